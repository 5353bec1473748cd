/* SPDX-License-Identifier: Apache-2.0 */
/* Binding tables of nodes, equal ones folded into one. */
#include "spank/shapes.h"

#include <stdlib.h>
#include <string.h>

/* As many names as fit on a line of text; the rest is counted. */
enum {
    HOSTS_SHOWN = 8
};

static struct hvd_shape *find(const struct hvd_shapes *shapes, const char *text)
{
    for (int i = 0; i < shapes->count; i++) {
        if (strcmp(shapes->shapes[i].text, text) == 0) {
            return &shapes->shapes[i];
        }
    }
    return NULL;
}

static struct hvd_shape *append(struct hvd_shapes *shapes, const char *text)
{
    size_t bytes = ((size_t)shapes->count + 1) * sizeof(*shapes->shapes);
    struct hvd_shape *grown = realloc(shapes->shapes, bytes);
    char *copy = strdup(text);

    if (grown != NULL) {
        shapes->shapes = grown;
    }
    if (grown == NULL || copy == NULL) {
        free(copy);
        return NULL;
    }
    grown[shapes->count] = (struct hvd_shape){.text = copy};
    return &grown[shapes->count++];
}

int hvd_shapes_add(struct hvd_shapes *shapes, const char *host, const char *text)
{
    struct hvd_shape *shape = find(shapes, text);
    size_t used;

    if (shape == NULL) {
        shape = append(shapes, text);
    }
    if (shape == NULL) {
        return HVD_ERR_NOMEM;
    }
    used = strlen(shape->hosts);
    if (shape->host_count < HOSTS_SHOWN) {
        snprintf(shape->hosts + used, sizeof(shape->hosts) - used, "%s%s",
                 used > 0 ? ", " : "", host);
    }
    shape->host_count++;
    shapes->host_count++;
    return 0;
}

void hvd_shapes_print(const struct hvd_shapes *shapes, FILE *out)
{
    for (int i = 0; i < shapes->count; i++) {
        const struct hvd_shape *shape = &shapes->shapes[i];

        fprintf(out, "hvd: binding on %s", shape->hosts);
        if (shape->host_count > HOSTS_SHOWN) {
            fprintf(out, " and %d more", shape->host_count - HOSTS_SHOWN);
        }
        fprintf(out, "\n%s\n", shape->text);
    }
}

void hvd_shapes_finish(struct hvd_shapes *shapes)
{
    for (int i = 0; i < shapes->count; i++) {
        free(shapes->shapes[i].text);
    }
    free(shapes->shapes);
    memset(shapes, 0, sizeof(*shapes));
}
