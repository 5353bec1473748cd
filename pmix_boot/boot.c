/* SPDX-License-Identifier: Apache-2.0 */
/* Boot: decides how this process was launched, exchanges cards, and computes the layout
 * from them. */
#include "pmix_boot/boot.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/number.h"
#include "pmix_boot/early_end.h"
#include "pmix_boot/rendezvous/client.h"
#include "pmix_boot/modex.h"
#include "pmix_boot/launch_env.h"
#include "pmix_boot/rank_record.h"
#include "pmix_boot/step_key.h"

static int compare_ranks(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

/* Checks what can be checked before the number of ranks is known: no rank is negative or
 * listed twice. */
static int check_ranks(const int *ranks, int count, struct hvd_error *err)
{
    int *sorted;
    int status = 0;

    if (count < 1) {
        return hvd_fail(err, HVD_ERR_ARG, "a job of %d ranks, expected at least 1",
                        count);
    }
    sorted = malloc((size_t)count * sizeof(*sorted));
    if (sorted == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a list of %d ranks", count);
    }
    memcpy(sorted, ranks, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_ranks);
    for (int i = 0; i < count && status == 0; i++) {
        if (sorted[i] < 0) {
            status = hvd_fail(err, HVD_ERR_ARG, "there is no rank %d", sorted[i]);
        } else if (i > 0 && sorted[i] == sorted[i - 1]) {
            status = hvd_fail(err, HVD_ERR_ARG, "rank %d is in the list of ranks twice",
                              sorted[i]);
        }
    }
    free(sorted);
    return status;
}

/* Warns once, although a process may start a job of one rank again and again. */
static void warn_of_missing_srun(void)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    char text[160];

    if (hvd_launch_lacks_srun((const char *const *)environ, text, sizeof(text)) &&
        !atomic_flag_test_and_set(&is_told)) {
        hvd_log(HVD_LOG_WARN, "%s", text);
    }
}

/* If the service cannot be reached, proposes PMIx in the error. */
static int run_rendezvous(const struct hvd_modex_query *query, struct hvd_modex *out,
                          struct hvd_error *err)
{
    int status = hvd_modex_rendezvous(query, out, err);

    if (status == HVD_ERR_NET && err != NULL && hvd_modex_has_pmix() &&
        hvd_launch_has_unused_pmix((const char *const *)environ)) {
        size_t used = strlen(err->text);

        snprintf(err->text + used, sizeof(err->text) - used,
                 " " HVD_ENV_START_BY "=pmix starts the job without this service");
    }
    return status;
}

static int run_modex(const struct hvd_modex_query *query, struct hvd_modex *out,
                     enum hvd_launch_kind *launch, struct hvd_error *err)
{
    const char *const *environment = (const char *const *)environ;
    int status = 0;

    *launch = HVD_LAUNCH_STORE;
    if (query->store == NULL) {
        status = hvd_launch_decide(environment, hvd_modex_has_pmix(), launch, err);
    }
    if (status < 0) {
        return status;
    }
    if (*launch == HVD_LAUNCH_PMIX) {
        status = hvd_modex_pmix(query, out, err);
        if (status != HVD_ERR_UNSUPPORTED ||
            hvd_launch_decide(environment, false, launch, NULL) < 0) {
            return status;
        }
        hvd_log(HVD_LOG_INFO, "no PMIx here: %s", err != NULL ? err->text : "");
    }
    switch (*launch) {
    case HVD_LAUNCH_ELASTIC:
        return hvd_modex_elastic(query, out, err);
    case HVD_LAUNCH_STORE:
        return hvd_modex_store(query, out, err);
    case HVD_LAUNCH_RENDEZVOUS:
        return run_rendezvous(query, out, err);
    case HVD_LAUNCH_PMIX:
    case HVD_LAUNCH_SINGLE:
        break;
    }
    warn_of_missing_srun();
    return hvd_modex_single(query, out, err);
}

static int copy_peer(const struct hvd_rank_record *card, struct hvd_boot_peer *peer)
{
    peer->host = strndup(card->node, card->host_length);
    peer->card = malloc(card->payload_bytes > 0 ? card->payload_bytes : 1);
    if (peer->host == NULL || peer->card == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(peer->card, card->payload, card->payload_bytes);
    peer->card_bytes = card->payload_bytes;
    return 0;
}

/* Copies host, payload and secret out of the blobs. nodes[rank] points into the blobs. */
static int read_cards(const struct hvd_modex *modex, struct hvd_boot *boot,
                      const char **nodes, struct hvd_error *err)
{
    int status = hvd_rank_record_compare(modex->blobs, modex->size, modex->rank, err);

    for (int rank = 0; status == 0 && rank < modex->size; rank++) {
        struct hvd_rank_record card;

        status = hvd_rank_record_read(&modex->blobs[rank], rank, &card, err);
        if (status < 0) {
            return status;
        }
        if (copy_peer(&card, &boot->peers[rank]) < 0) {
            return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the card of rank %d",
                            rank);
        }
        if (rank == 0) {
            memcpy(boot->secret, card.secret, sizeof(boot->secret));
        }
        nodes[rank] = card.node;
    }
    return status;
}

static int fill_boot(const struct hvd_modex *modex, struct hvd_boot *boot,
                     struct hvd_error *err)
{
    const char **nodes = calloc((size_t)modex->size, sizeof(*nodes));
    int status;

    boot->rank = modex->rank;
    boot->size = modex->size;
    boot->generation = modex->generation;
    boot->peers = calloc((size_t)modex->size, sizeof(*boot->peers));
    if (nodes == NULL || boot->peers == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", modex->size);
    } else {
        status = read_cards(modex, boot, nodes, err);
    }
    if (status == 0) {
        status = hvd_layout_init(&boot->layout, nodes, modex->size, err);
    }
    free(nodes);
    return status;
}

static int settle_secret(struct hvd_boot *boot, enum hvd_launch_kind launch,
                         struct hvd_error *err)
{
    const char *const *environment = (const char *const *)environ;
    int status;

    if (launch == HVD_LAUNCH_PMIX) {
        hvd_step_key_mix(boot->secret, environment);
    } else if (launch == HVD_LAUNCH_RENDEZVOUS) {
        hvd_step_key_mix_service(boot->secret, environment);
    }
    if (boot->rank == 0) {
        hvd_log(HVD_LOG_INFO, "start: %d rank%s, by %s", boot->size,
                hvd_number_plural(boot->size), hvd_launch_name(launch));
    }
    status = hvd_step_key_mix_users(boot->secret, environment, err);
    boot->number = hvd_step_key_number(boot->secret);
    return status;
}

int hvd_boot_describe(const char **how, struct hvd_error *err)
{
    enum hvd_launch_kind launch = HVD_LAUNCH_SINGLE;
    int status = hvd_launch_decide((const char *const *)environ, hvd_modex_has_pmix(),
                                   &launch, err);

    *how = hvd_launch_name(launch);
    return status;
}

int hvd_boot_create(const struct hvd_boot_query *query, struct hvd_boot **out,
                    struct hvd_error *err)
{
    struct hvd_boot *boot = calloc(1, sizeof(*boot));
    struct hvd_modex_query modex_query = {
        .ranks = query->ranks,
        .count = query->ranks != NULL ? query->count : 0,
        .store = query->store,
        .timeout_ms = query->timeout_ms,
    };
    struct hvd_blob *mine = &modex_query.mine;
    struct hvd_modex modex = {0};
    enum hvd_launch_kind launch = HVD_LAUNCH_SINGLE;
    int status = boot != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "no memory to start");

    hvd_early_end_forget();
    if (status == 0 && query->ranks != NULL) {
        status = check_ranks(query->ranks, query->count, err);
    }
    if (status == 0) {
        status = hvd_rank_record_pack(query->card, query->card_bytes, mine, err);
    }
    if (status == 0) {
        status = run_modex(&modex_query, &modex, &launch, err);
    }
    if (status == 0) {
        boot->is_elastic = launch == HVD_LAUNCH_ELASTIC;
        status = fill_boot(&modex, boot, err);
    }
    if (status == 0) {
        status = settle_secret(boot, launch, err);
    }
    hvd_modex_finish(&modex);
    free(mine->data);
    if (status < 0) {
        hvd_boot_destroy(boot);
        return status;
    }
    *out = boot;
    return 0;
}

int hvd_boot_lost(const struct hvd_boot *boot)
{
    struct hvd_rendezvous_notices notices;

    if (!boot->is_elastic) {
        return -1;
    }
    notices = hvd_rendezvous_client_notices();
    return notices.lost < 0 && notices.is_cut ? boot->rank : notices.lost;
}

void hvd_boot_destroy(struct hvd_boot *boot)
{
    if (boot == NULL) {
        return;
    }
    for (int rank = 0; boot->peers != NULL && rank < boot->size; rank++) {
        free(boot->peers[rank].host);
        free(boot->peers[rank].card);
    }
    free(boot->peers);
    hvd_layout_finish(&boot->layout);
    free(boot);
}
