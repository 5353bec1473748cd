/* SPDX-License-Identifier: Apache-2.0 */
/* Does nothing: what a launch costs by itself. */
int main(void)
{
    return 0;
}
