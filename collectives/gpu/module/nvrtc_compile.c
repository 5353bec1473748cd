/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc_compile LIBRARY SOURCE_ROOT ARCHITECTURE OUTPUT: compiles kernels.cu to a binary
 * for one GPU architecture with NVRTC, NVIDIA's compiler library. Prints nothing and
 * exits with 0 if there is no warning and the binary contains every kernel. A tool of the
 * build. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/module/kernel_work.h"

/* The functions of nvrtc.h that are used. */
struct nvrtc {
    int (*create)(void **program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *text);
    int (*binary_size)(void *program, size_t *size);
    int (*binary)(void *program, char *binary);
};

/* Replacements for the headers that the sources include: NVRTC has no system headers. */
static const char *const header_names[] = {"stdint.h", "string.h"};
static const char *const headers[] = {
    "typedef signed char int8_t; typedef unsigned char uint8_t;"
    "typedef short int16_t; typedef unsigned short uint16_t;"
    "typedef int int32_t; typedef unsigned uint32_t;"
    "typedef long long int64_t; typedef unsigned long long uint64_t;"
    "typedef unsigned long long uintptr_t;",
    "",
};

static void must_hold(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "nvrtc_compile: %s\n", what);
        exit(1);
    }
}

static void find_symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    must_hold(found != NULL, name);
    memcpy(function, &found, sizeof(found));
}

static void find_all(void *library, struct nvrtc *nvrtc)
{
    find_symbol(library, "nvrtcCreateProgram", &nvrtc->create);
    find_symbol(library, "nvrtcCompileProgram", &nvrtc->compile);
    find_symbol(library, "nvrtcGetProgramLogSize", &nvrtc->log_size);
    find_symbol(library, "nvrtcGetProgramLog", &nvrtc->log);
    find_symbol(library, "nvrtcGetCUBINSize", &nvrtc->binary_size);
    find_symbol(library, "nvrtcGetCUBIN", &nvrtc->binary);
}

static char *read_source(const char *root)
{
    static char source[1 << 16];
    char path[4096];
    FILE *file;
    size_t bytes;

    snprintf(path, sizeof(path), "%s/collectives/gpu/module/kernels.cu", root);
    file = fopen(path, "r");
    must_hold(file != NULL, path);
    bytes = fread(source, 1, sizeof(source) - 1, file);
    fclose(file);
    source[bytes] = '\0';
    return source;
}

/* Prints the compiler's log and returns whether it was empty. A line about GPUs that CUDA
 * 13 no longer supports does not count. */
static bool show_log(const struct nvrtc *nvrtc, void *program)
{
    size_t size = 0;
    char *log, *line;
    int lines = 0;

    must_hold(nvrtc->log_size(program, &size) == 0, "no size of the log");
    log = calloc(size + 1, 1);
    must_hold(log != NULL && nvrtc->log(program, log) == 0, "no log");
    for (line = strtok(log, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strstr(line, "are deprecated and may be removed") == NULL) {
            fprintf(stderr, "%s\n", line);
            lines++;
        }
    }
    free(log);
    return lines == 0;
}

static bool has_text(const char *data, size_t bytes, const char *text)
{
    size_t length = strlen(text) + 1; /* with the final NUL: whole names only */

    for (size_t i = 0; i + length <= bytes; i++) {
        if (memcmp(data + i, text, length) == 0) {
            return true;
        }
    }
    return false;
}

#define NAME(KERNEL, FROM, TO) "hvd_" #KERNEL,
#define SUM(KERNEL, TYPE) "hvd_" #KERNEL,
static const char *const names[] = {"hvd_copy", "hvd_poison",
                                    HVD_KERNEL_LIST(NAME) HVD_KERNEL_PUSH_LIST(NAME)
                                        HVD_KERNEL_SUM_LIST(SUM)};
#undef NAME
#undef SUM

static void write_binary(const struct nvrtc *nvrtc, void *program, const char *path)
{
    size_t size = 0;
    char *binary;
    FILE *file;

    must_hold(nvrtc->binary_size(program, &size) == 0 && size > 0, "no binary");
    binary = malloc(size);
    must_hold(binary != NULL && nvrtc->binary(program, binary) == 0, "no binary");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        must_hold(has_text(binary, size, names[i]), names[i]);
    }
    file = fopen(path, "wb");
    must_hold(file != NULL, path);
    must_hold(fwrite(binary, 1, size, file) == size && fclose(file) == 0, path);
    free(binary);
}

int main(int argc, char **argv)
{
    char root[4096], architecture[64];
    /* the same options as in compile_kernels.sh */
    const char *options[] = {root, architecture, "--std=c++17", "--fmad=false"};
    void *library, *program = NULL;
    struct nvrtc nvrtc;
    int result;

    must_hold(argc == 5, "usage: nvrtc_compile LIBRARY SOURCE_ROOT ARCHITECTURE OUTPUT");
    library = dlopen(argv[1], RTLD_NOW);
    must_hold(library != NULL, argv[1]);
    find_all(library, &nvrtc);
    snprintf(root, sizeof(root), "--include-path=%s", argv[2]);
    snprintf(architecture, sizeof(architecture), "--gpu-architecture=%s", argv[3]);
    must_hold(nvrtc.create(&program, read_source(argv[2]), "kernels.cu", 2, headers,
                           header_names) == 0,
              "no program");
    result = nvrtc.compile(program, 4, options);
    must_hold(show_log(&nvrtc, program) && result == 0,
              "it does not compile, or not cleanly");
    write_binary(&nvrtc, program, argv[4]);
    return 0;
}
