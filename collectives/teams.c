/* SPDX-License-Identifier: Apache-2.0 */
/* All teams of this rank, and their turns. */
#include "collectives/teams.h"

#include <assert.h>
#include <stdlib.h>

#include "collectives/clock.h"
#include "collectives/run.h"

/* What a team may touch in one turn: some 100 us of work, in which others wait. */
static const int64_t turn_bytes = 512 * 1024;

/* What starting a batch costs, as bytes touched. */
static const int64_t start_bytes = 4096;

/* A team and its queue. It is numbered by its index in the table, which is the same on all ranks
 * and is its channel of the net. */
struct place {
    int set;
    bool is_member; /* else only noted, so that all ranks number alike */
    struct hvd_shm_region *region; /* NULL when no member is on this node */
    struct hvd_team team;
    struct hvd_batch *batches; /* the first is under way once run is there */
    struct hvd_batch **end;
    struct hvd_run *run;
};

struct hvd_teams {
    const struct hvd_boot *boot;
    struct hvd_shm *shm;
    struct hvd_net *net;
    struct hvd_geometry geometry;
    struct place **places; /* [count], lanes first; NULL: free */
    int count;
    bool has_stopped;
    struct hvd_error failure;
};

static void place_destroy(struct place *place)
{
    if (place == NULL) {
        return;
    }
    hvd_run_destroy(place->run);
    while (place->batches != NULL) {
        struct hvd_batch *batch = place->batches;

        place->batches = batch->next;
        hvd_batch_destroy(batch);
    }
    hvd_team_finish(&place->team);
    hvd_shm_region_close(place->region);
    free(place);
}

/* The local ranks of the members on this node, [local size]; returns their number. */
static int find_local_members(const struct hvd_boot *boot, const int *ranks, int count,
                              int *members)
{
    const struct hvd_layout *layout = &boot->layout;
    int found = 0;

    for (int i = 0; i < count; i++) {
        if (layout->node[ranks[i]] == layout->node[boot->rank]) {
            members[found++] = layout->local_rank[ranks[i]];
        }
    }
    return found;
}

static int open_region(const struct hvd_teams *teams, struct place *place,
                       const int *ranks, int count, struct hvd_error *err)
{
    int *members = calloc((size_t)count, sizeof(members[0]));
    int status = 0;
    int found;

    if (members == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a team of %d ranks", count);
    }
    found = find_local_members(teams->boot, ranks, count, members);
    if (found > 0) {
        status = hvd_shm_region_open(teams->shm, members, found, &place->region, err);
    }
    free(members);
    return status;
}

static bool has_rank(const int *ranks, int count, int rank)
{
    for (int i = 0; i < count; i++) {
        if (ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

/* The lowest free index, made if there is none; or a negative status. */
static int find_index(struct hvd_teams *teams, struct hvd_error *err)
{
    struct place **grown;
    int at = 0;

    while (at < teams->count && teams->places[at] != NULL) {
        at++;
    }
    if (at == teams->count) {
        grown = realloc(teams->places, ((size_t)at + 1) * sizeof(grown[0]));
        if (grown == NULL) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for another team");
        }
        grown[at] = NULL;
        teams->places = grown;
        teams->count++;
    }
    return at;
}

int hvd_teams_add(struct hvd_teams *teams, int set, const int *ranks, int count,
                  struct hvd_error *err)
{
    int index = find_index(teams, err);
    struct place *place = index < 0 ? NULL : calloc(1, sizeof(*place));
    int status;

    if (place == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for another team");
    }
    place->set = set;
    place->end = &place->batches;
    place->is_member = has_rank(ranks, count, teams->boot->rank);
    status = open_region(teams, place, ranks, count, err);
    if (status == 0 && place->is_member) {
        place->team.net = teams->net;
        place->team.region = place->region;
        place->team.channel = (uint32_t)index;
        place->team.geometry = teams->geometry;
        status = hvd_team_init(&place->team, teams->boot, ranks, count, err);
    }
    if (status != 0) {
        place_destroy(place);
        return status;
    }
    teams->places[index] = place;
    return 0;
}

static int open_lanes(struct hvd_teams *teams, struct hvd_error *err)
{
    int *ranks = calloc((size_t)teams->boot->size, sizeof(ranks[0]));
    int status = 0;

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the teams");
    }
    for (int i = 0; i < teams->boot->size; i++) {
        ranks[i] = i;
    }
    for (int i = 0; status == 0 && i < HVD_LANES; i++) {
        status = hvd_teams_add(teams, HVD_SET_GLOBAL, ranks, teams->boot->size, err);
    }
    free(ranks);
    return status;
}

int hvd_teams_create(const struct hvd_boot *boot, struct hvd_shm *shm,
                     struct hvd_net *net, const struct hvd_geometry *geometry,
                     struct hvd_teams **out, struct hvd_error *err)
{
    struct hvd_teams *teams = calloc(1, sizeof(*teams));
    int status;

    if (teams == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the teams");
    }
    *teams =
        (struct hvd_teams){.boot = boot, .shm = shm, .net = net, .geometry = *geometry};
    status = open_lanes(teams, err);
    if (status != 0) {
        hvd_teams_destroy(teams);
        return status;
    }
    *out = teams;
    return 0;
}

void hvd_teams_destroy(struct hvd_teams *teams)
{
    if (teams == NULL) {
        return;
    }
    for (int i = 0; i < teams->count; i++) {
        place_destroy(teams->places[i]);
    }
    free(teams->places);
    free(teams);
}

/* The index of a further set's team, or -1. */
static int find_set(const struct hvd_teams *teams, int set)
{
    for (int i = HVD_LANES; i < teams->count; i++) {
        if (teams->places[i] != NULL && teams->places[i]->set == set) {
            return i;
        }
    }
    return -1;
}

void hvd_teams_remove(struct hvd_teams *teams, int set)
{
    int index = find_set(teams, set);

    if (index >= 0) {
        assert(teams->places[index]->batches == NULL);
        place_destroy(teams->places[index]);
        teams->places[index] = NULL;
    }
}

void hvd_teams_submit(struct hvd_teams *teams, struct hvd_batch *batch)
{
    int index = batch->header.set == HVD_SET_GLOBAL ? batch->header.lane
                                                    : find_set(teams, batch->header.set);
    struct place *place;

    assert(index >= 0 && teams->places[index]->is_member);
    place = teams->places[index];
    batch->next = NULL;
    *place->end = batch;
    place->end = &batch->next;
}

static struct hvd_batch *pop(struct place *place)
{
    struct hvd_batch *batch = place->batches;

    place->batches = batch->next;
    if (place->batches == NULL) {
        place->end = &place->batches;
    }
    return batch;
}

/* Starts the first batch. Returns HVD_INPROGRESS while local ranks have yet to open the team. */
static int start(struct hvd_teams *teams, struct place *place)
{
    struct hvd_batch *batch = place->batches;
    int status;

    if (!hvd_shm_region_is_ready(place->region)) {
        return HVD_INPROGRESS;
    }
    status = hvd_run_create(&place->team, &batch->header, batch->entries, batch->rows,
                            &place->run, &teams->failure);
    if (status == 0) {
        batch->is_started = true;
        batch->started_ns = hvd_clock_ns();
    }
    return status;
}

/* Moves the first batch on. Returns 0 when it is done. */
static int advance(struct hvd_teams *teams, struct place *place, int64_t *work,
                   bool *moved)
{
    int status;

    if (place->run == NULL) {
        status = start(teams, place);
        if (status != 0) {
            return status;
        }
        *work -= start_bytes;
        *moved = true;
    }
    status = hvd_run_progress(place->run, work, moved);
    if (status < 0) {
        hvd_fail(&teams->failure, status, "%s", hvd_status_name(status));
    }
    return status;
}

static int take_turn(struct hvd_teams *teams, struct place *place, hvd_batch_ended ended,
                     void *context, bool *moved)
{
    int64_t work = turn_bytes;

    while (place->batches != NULL && work > 0 && !teams->has_stopped) {
        int status = advance(teams, place, &work, moved);

        if (status != 0) {
            return status == HVD_INPROGRESS ? 0 : status;
        }
        hvd_run_destroy(place->run);
        place->run = NULL;
        ended(context, pop(place));
    }
    return 0;
}

int hvd_teams_progress(struct hvd_teams *teams, hvd_batch_ended ended, void *context,
                       bool *moved)
{
    for (int i = 0; i < teams->count && !teams->has_stopped; i++) {
        struct place *place = teams->places[i];
        int status = place != NULL ? take_turn(teams, place, ended, context, moved) : 0;

        if (status != 0) {
            teams->has_stopped = true;
            return status;
        }
    }
    return 0;
}

const struct hvd_error *hvd_teams_failure(const struct hvd_teams *teams)
{
    return &teams->failure;
}

bool hvd_teams_are_idle(const struct hvd_teams *teams)
{
    for (int i = 0; i < teams->count; i++) {
        if (teams->places[i] != NULL && teams->places[i]->batches != NULL) {
            return false;
        }
    }
    return true;
}

struct hvd_batch *hvd_teams_take_batch(struct hvd_teams *teams)
{
    teams->has_stopped = true;
    for (int i = 0; i < teams->count; i++) {
        if (teams->places[i] != NULL && teams->places[i]->batches != NULL) {
            return pop(teams->places[i]);
        }
    }
    return NULL;
}
