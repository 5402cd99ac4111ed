// SPDX-License-Identifier: Apache-2.0
// A wall clock that a test sets: seconds in the file that STANDIN_CLOCK names are added to the real one's.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec* out) {
  const int result = (int)syscall(SYS_clock_gettime, id, out);
  const char* path = getenv("STANDIN_CLOCK");
  if (result != 0 || id != CLOCK_REALTIME || path == NULL) return result;
  FILE* file = fopen(path, "re");
  long shift = 0;
  if (file != NULL) {
    if (fscanf(file, "%ld", &shift) != 1) shift = 0;
    fclose(file);
  }
  out->tv_sec += shift;
  return 0;
}
