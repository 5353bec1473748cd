/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum in plain double arithmetic, and the tolerance for rounding. */
#include "tests/collectives/reduce/adasum_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/collectives/rank_values.h"

struct adasum_vector adasum_vector_make(int64_t count)
{
    size_t room = (size_t)count + 1;
    struct adasum_vector vector = {
        .count = count,
        .value = calloc(room, sizeof(double)),
        .magnitude = calloc(room, sizeof(double)),
    };

    if (vector.value == NULL || vector.magnitude == NULL) {
        fprintf(stderr, "# no memory\n");
        exit(1);
    }
    return vector;
}

void adasum_vector_finish(struct adasum_vector *vector)
{
    free(vector->value);
    free(vector->magnitude);
    *vector = (struct adasum_vector){0};
}

void adasum_vector_begin(struct adasum_vector *vector)
{
    for (int64_t i = 0; i < vector->count; i++) {
        vector->magnitude[i] = fabs(vector->value[i]);
    }
}

static double product(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Returns the factor by which Adasum multiplies a vector. square and other_square are the
 * squared lengths of this vector and the other one. *most becomes the largest factor that
 * any dot product of such vectors can give. */
static double factor(double dot, double square, double other_square, double *most)
{
    *most = square > 0 ? 1 + sqrt(other_square / square) / 2 : 1;
    return square > 0 ? 1 - dot / (2 * square) : 1;
}

void adasum_reference_combine(struct adasum_vector *left,
                              const struct adasum_vector *right)
{
    int64_t count = left->count;
    double dot = product(left->value, right->value, count);
    double left_square = product(left->value, left->value, count);
    double right_square = product(right->value, right->value, count);
    double most_left, most_right;
    double of_left = factor(dot, left_square, right_square, &most_left);
    double of_right = factor(dot, right_square, left_square, &most_right);

    for (int64_t i = 0; i < count; i++) {
        left->value[i] = of_left * left->value[i] + of_right * right->value[i];
        left->magnitude[i] =
            most_left * left->magnitude[i] + most_right * right->magnitude[i];
    }
}

void adasum_reference_tree(struct adasum_vector *vectors, int ranks)
{
    for (int distance = 1; distance < ranks; distance *= 2) {
        for (int i = 0; i < ranks; i += 2 * distance) {
            adasum_reference_combine(&vectors[i], &vectors[i + distance]);
        }
    }
}

bool adasum_reference_is_close(enum hvd_dtype dtype, int ranks,
                               const struct adasum_vector *expected, int64_t index,
                               double got)
{
    const double least_half = ldexp(1, -24); /* the smallest float16 */
    enum hvd_dtype work = dtype == HVD_FLOAT64 ? HVD_FLOAT64 : HVD_FLOAT32;
    double value = expected->value[index];
    double roundings = 4 + 4 * log2(ranks);
    double tolerance = roundings * value_epsilon(work) * expected->magnitude[index];

    if (dtype != work) {
        tolerance += value_epsilon(dtype) * fabs(value) + least_half / 2;
    }
    return value == got || fabs(value - got) <= tolerance;
}
