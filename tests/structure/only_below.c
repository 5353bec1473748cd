/* SPDX-License-Identifier: Apache-2.0 */
/* Links with one library of collectives as a whole, and with the libraries below it. */

int main(void)
{
    return 0;
}
