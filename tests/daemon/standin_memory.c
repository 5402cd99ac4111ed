// SPDX-License-Identifier: Apache-2.0
// Memory that a test takes away: while the file that STANDIN_MEMORY names exists, no piece of 1 KiB or more is to be had.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_realloc(void* old, size_t size);

static int refused(size_t size) {
  if (size < 1024) return 0;
  const char* path = getenv("STANDIN_MEMORY");
  if (path == NULL || access(path, F_OK) != 0) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  return refused(size) ? NULL : __libc_malloc(size);
}

void* realloc(void* old, size_t size) {
  return refused(size) ? NULL : __libc_realloc(old, size);
}
