/* SPDX-License-Identifier: Apache-2.0 */
/* Names of activities and rows in the timeline. */
#include "collectives/trace/timeline_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/request/request.h"
#include "collectives/hvd.h"
#include "collectives/trace/trace_text.h"

static const struct {
    const char *negotiate;
    const char *on_node;
    const char *across_nodes;
} names[] = {
    [HVD_KIND_ALLREDUCE] = {"NEGOTIATE_ALLREDUCE", "SHM_ALLREDUCE", "NET_ALLREDUCE"},
    [HVD_KIND_ALLGATHER] = {"NEGOTIATE_ALLGATHER", "SHM_ALLGATHER", "NET_ALLGATHER"},
    [HVD_KIND_BROADCAST] = {"NEGOTIATE_BROADCAST", "SHM_BCAST", "NET_BCAST"},
    [HVD_KIND_JOIN] = {"NEGOTIATE_JOIN", "SHM_JOIN", "NET_JOIN"},
    [HVD_KIND_ADASUM] = {"NEGOTIATE_ADASUM", "SHM_ADASUM_ALLREDUCE",
                         "NET_ADASUM_ALLREDUCE"},
    [HVD_KIND_ALLTOALL] = {"NEGOTIATE_ALLTOALL", "SHM_ALLTOALL", "NET_ALLTOALL"},
    [HVD_KIND_BARRIER] = {"NEGOTIATE_BARRIER", "SHM_BARRIER", "NET_BARRIER"},
    [HVD_KIND_REDUCESCATTER] = {"NEGOTIATE_REDUCESCATTER", "SHM_REDUCESCATTER",
                                "NET_REDUCESCATTER"},
    [HVD_KIND_REDUCE] = {"NEGOTIATE_REDUCE", "SHM_REDUCE", "NET_REDUCE"},
    [HVD_KIND_GATHER] = {"NEGOTIATE_GATHER", "SHM_GATHER", "NET_GATHER"},
    [HVD_KIND_SCATTER] = {"NEGOTIATE_SCATTER", "SHM_SCATTER", "NET_SCATTER"},
};

const char *hvd_timeline_negotiation(enum hvd_kind kind)
{
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind].negotiate : NULL;
}

const char *hvd_timeline_transport(enum hvd_kind kind, bool crosses_nodes)
{
    return crosses_nodes ? names[kind].across_nodes : names[kind].on_node;
}

char *hvd_timeline_describe(const struct hvd_entry *entry)
{
    const struct hvd_descriptor *descriptor = &entry->descriptor;
    char text[HVD_TRACE_TEXT_BYTES - 256];
    size_t used;

    used = (size_t)snprintf(text, sizeof(text), "{\"dtype\": \"%s\", \"shape\": \"[",
                            hvd_dtype_name(descriptor->dtype));
    for (int i = 0; i < descriptor->ndim; i++) {
        bool is_allocated = i == 0 && (hvd_kind_has_rows(descriptor->kind) ||
                                       descriptor->kind == HVD_KIND_ALLTOALL);

        used += (size_t)snprintf(
            text + used, sizeof(text) - used, "%s%" PRId64, i > 0 ? ", " : "",
            is_allocated ? entry->result_rows : descriptor->shape[i]);
    }
    snprintf(text + used, sizeof(text) - used, "]\"}");
    return strdup(text);
}

char *hvd_timeline_describe_p2p(const struct hvd_entry *entry)
{
    char text[HVD_TRACE_TEXT_BYTES - 256];

    snprintf(text, sizeof(text),
             "{\"dtype\": \"%s\", \"bytes\": %zu, \"tag\": %" PRId64 ", \"rank\": %d}",
             hvd_dtype_name(entry->descriptor.dtype), entry->output_bytes,
             entry->request->tag, (int)entry->request->value);
    return strdup(text);
}

void hvd_timeline_name_p2p(const struct hvd_entry *entry, int number, char *name,
                           size_t bytes)
{
    const int other = entry->descriptor.root;
    size_t used;

    if (other == HVD_ANY_SOURCE) {
        used = (size_t)snprintf(name, bytes, "receive from any rank");
    } else {
        used = (size_t)snprintf(
            name, bytes, "%s %d",
            entry->descriptor.kind == HVD_KIND_SEND ? "send to" : "receive from", other);
    }
    if (number > 1) {
        snprintf(name + used, bytes - used, " (%d)", number);
    }
}
