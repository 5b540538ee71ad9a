/* base/sha256.h: SHA-256 (FIPS 180-4), for what must not be guessed from its sum. Checksums are base/hash.h's. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <pawl/types.h>

#define SHA256_BYTES ((size_t)32)

/* The digest of these bytes. Takes the same time for all bytes of one size. */
void sha256(pawl_bytes bytes, uint8_t ret_digest[SHA256_BYTES]);

/* Whether two digests are equal, in a time that does not depend on where they differ. */
bool sha256_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES]);

#endif
