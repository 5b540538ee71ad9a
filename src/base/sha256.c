#include "base/sha256.h"

#include <string.h>

#include "base/bytes.h"

#define BLOCK  ((size_t)64)
#define ROUNDS 64
#define LENGTH ((size_t)8) /* bytes of the size in bits, at the end of the last block */

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t v, unsigned bits)
{
    return v >> bits | v << (32 - bits);
}

/* The 16 words of a block, and those that follow from them. */
static void expand(const uint8_t *block, uint32_t words[ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = get_u32_sorted(block + 4 * i);
    for (size_t i = 16; i < ROUNDS; i++) {
        uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + (turn(early, 7) ^ turn(early, 18) ^ early >> 3) + words[i - 7]
                   + (turn(late, 17) ^ turn(late, 19) ^ late >> 10);
    }
}

/* Let the state cover one more block. */
static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[ROUNDS];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(block, words);
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + constants[i] + words[i];
        uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void sha256(pawl_bytes bytes, uint8_t ret_digest[SHA256_BYTES])
{
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[2 * BLOCK] = {0};
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        compress(state, at);
    /* The rest, a one bit, zeros, and the size in bits: in one block, or two if it does not fit. */
    if (left)
        memcpy(last, at, left);
    last[left] = 0x80;
    size_t end = left + 1 + LENGTH <= BLOCK ? BLOCK : 2 * BLOCK;
    put_u64_sorted(last + end - LENGTH, (uint64_t)bytes.size * 8);
    for (size_t i = 0; i < end; i += BLOCK)
        compress(state, last + i);
    for (size_t i = 0; i < 8; i++)
        put_u32_sorted(ret_digest + 4 * i, state[i]);
}

bool sha256_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
    /* volatile, so that no compiler leaves the loop at the first difference. */
    volatile uint8_t differ = 0;
    for (size_t i = 0; i < SHA256_BYTES; i++)
        differ = (uint8_t)(differ | (a[i] ^ b[i]));
    return differ == 0;
}
