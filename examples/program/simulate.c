/* Two counters in a row, with customers who come at random: what do fast servers cost, and what do they save?

       ./simulate RATE1 RATE2 SEED

   prints the mean time that 2000 customers spend at both counters, plus the price of the two service rates. The same seed
   gives the same customers, so two settings can be compared on equal terms. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static double uniform(void) { /* splitmix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return ((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

static double exponential(void) { return -log1p(-uniform()); }

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s RATE1 RATE2 SEED\n", argv[0]);
        return 2;
    }
    double rate1 = atof(argv[1]), rate2 = atof(argv[2]);
    if (rate1 <= 0.0 || rate2 <= 0.0) {
        fprintf(stderr, "rates must be positive: %s %s\n", argv[1], argv[2]);
        return 1;
    }
    state = strtoull(argv[3], NULL, 10);
    const int customers = 2000;
    double arrival = 0.0, free1 = 0.0, free2 = 0.0, total = 0.0;
    for (int n = 0; n < customers; n++) {
        arrival += exponential();
        free1 = fmax(arrival, free1) + exponential() / rate1;
        free2 = fmax(free1, free2) + exponential() / rate2;
        total += free2 - arrival;
    }
    printf("%.17g\n", total / customers + 0.5 * rate1 + 0.8 * rate2);
    return 0;
}
