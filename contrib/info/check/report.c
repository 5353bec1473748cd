/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/report.h"

#include <math.h>
#include <stdlib.h>

#include "gpu_binding/base/json.h"

static const char *const levels[] = {"green", "yellow", "red"};
static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};

/* Prints a number with about three digits. */
static void print_short(double value, FILE *out)
{
    fprintf(out, value >= 100 ? "%.0f" : "%.3g", value);
}

static void print_finding(const struct hvd_info_finding *finding, bool is_colored,
                          FILE *out)
{
    fprintf(out, "%s: %s%s%s: %s: ", finding->nodes,
            is_colored ? colors[finding->level] : "", levels[finding->level],
            is_colored ? "\033[0m" : "", finding->check);
    if (!isnan(finding->value)) {
        print_short(finding->value, out);
        fprintf(out, "%s%s, the median is ", finding->unit[0] != '\0' ? " " : "",
                finding->unit);
        print_short(finding->median, out);
    }
    if (!isnan(finding->limit)) {
        fputs(", the limit is ", out);
        print_short(finding->limit, out);
    }
    fprintf(out, "%s%s\n",
            finding->advice[0] != '\0' && !isnan(finding->value) ? ": " : "",
            finding->advice);
}

void hvd_info_findings_print(const struct hvd_info_findings *findings, bool is_colored,
                             FILE *out)
{
    for (int i = 0; i < findings->count; i++) {
        print_finding(&findings->items[i], is_colored, out);
    }
}

int hvd_info_findings_count(const struct hvd_info_findings *findings,
                            enum hvd_info_level level)
{
    int count = 0;

    for (int i = 0; i < findings->count; i++) {
        count += findings->items[i].level == level;
    }
    return count;
}

static void print_field(const char *name, const char *text, FILE *out)
{
    fprintf(out, ", \"%s\": ", name);
    hvd_json_print(text, out);
}

/* JSON has no number that is infinite. */
static void print_number(const char *name, double value, FILE *out)
{
    if (isfinite(value)) {
        fprintf(out, ", \"%s\": %.6g", name, value);
    } else {
        fprintf(out, ", \"%s\": null", name);
    }
}

static void print_item(const struct hvd_info_finding *finding, FILE *out)
{
    fputs("{\"check\": ", out);
    hvd_json_print(finding->check, out);
    print_field("status", levels[finding->level], out);
    print_field("nodes", finding->nodes, out);
    print_number("value", finding->value, out);
    print_number("median", finding->median, out);
    print_number("threshold", finding->limit, out);
    print_field("unit", finding->unit, out);
    print_field("advice", finding->advice, out);
    fputc('}', out);
}

/* Prints the folded facts as strings. */
static int print_facts(const struct hvd_info_nodes *nodes, const char *const *texts,
                       FILE *out, struct hvd_error *err)
{
    char *folded = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&folded, &bytes);
    int status;

    if (memory == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the facts");
    }
    status = hvd_info_fold_print(nodes, texts, memory, err);
    if (fclose(memory) == 0 && status == 0) {
        hvd_json_print(folded, out);
    }
    free(folded);
    return status;
}

int hvd_info_findings_json(const struct hvd_info_nodes *nodes, const char *const *texts,
                           const struct hvd_info_findings *findings, FILE *out,
                           struct hvd_error *err)
{
    const char *separator = "";
    int status;

    fprintf(out, "{\"fail_count\": %d, \"failed_checks\": [",
            hvd_info_findings_count(findings, HVD_INFO_RED));
    for (int i = 0; i < findings->count; i++) {
        if (findings->items[i].level == HVD_INFO_RED) {
            fputs(separator, out);
            hvd_json_print(findings->items[i].check, out);
            separator = ", ";
        }
    }
    fprintf(out, "], \"warn_count\": %d, \"ranks\": %d, \"nodes\": %d, \"checks\": [",
            hvd_info_findings_count(findings, HVD_INFO_YELLOW), nodes->ranks,
            nodes->count);
    for (int i = 0; i < findings->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        print_item(&findings->items[i], out);
    }
    fputs("], \"facts\": ", out);
    status = print_facts(nodes, texts, out, err);
    fputs("}\n", out);
    return status;
}
