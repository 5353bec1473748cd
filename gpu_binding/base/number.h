/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in variables and in sentences. */
#ifndef HVD_NUMBER_H
#define HVD_NUMBER_H

/* Returns the number in the text, such as the value of a variable. Returns -1 if the text
 * is NULL, has anything but digits, or is a number above `most`. */
long hvd_number_parse(const char *text, long most);

/* Does the same for the value of an environment variable, up to INT_MAX. */
int hvd_number_of_variable(const char *name);

/* Returns the ending of a regular noun after the number: "" after 1, else "s". */
const char *hvd_number_plural(long count);

#endif
