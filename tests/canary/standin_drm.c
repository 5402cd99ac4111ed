/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD for tests: an amdgpu render node that is a plain file beside this library, named renderD128. Pinning spins a
 * second a 2 MiB slot in the kernel when the file "stall" is there and the page is still a file's, as form B of the fault
 * does: EAGAIN after a window a slot, then success. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char folder[512];
static int node = -1;

static void find_folder(void) {
  Dl_info self;
  if (folder[0] == 0 && dladdr((void*)find_folder, &self) != 0) {
    snprintf(folder, sizeof folder - 32, "%s", self.dli_fname);
    char* slash = strrchr(folder, '/');
    if (slash) *slash = 0;
  }
}

DIR* opendir(const char* name) {
  DIR* (*next)(const char*) = (DIR * (*)(const char*)) dlsym(RTLD_NEXT, "opendir");
  find_folder();
  if (strcmp(name, "/dev/dri") == 0) return next(folder);
  return next(name);
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = va_arg(list, mode_t);
  va_end(list);
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  find_folder();
  if (strcmp(path, "/dev/dri/renderD128") != 0) return next(path, flags, mode);
  char own[600];
  snprintf(own, sizeof own, "%s/renderD128", folder);
  node = next(own, O_RDONLY | O_CLOEXEC);
  return node;
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int file_page(uint64_t address) {
  uint64_t entry = 0;
  int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pread(fd, &entry, sizeof entry, (off_t)(address / 4096 * 8)) != sizeof entry) entry = 0;
  close(fd);
  return (int)(entry >> 61 & 1);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (fd != node || node < 0) {
    int (*next)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    return next(fd, request, argument);
  }
  if (request == 0xc0406400) { /* DRM_IOCTL_VERSION: size and pointer of the name lie behind three ints */
    uint64_t* words = argument;
    strcpy((char*)(uintptr_t)words[3], "amdgpu");
    return 0;
  }
  if (request != 0xc0186451) return 0;
  const uint64_t* userptr = argument;
  char stall[600];
  snprintf(stall, sizeof stall, "%s/stall", folder);
  if (access(stall, F_OK) != 0) return 0;
  for (uint64_t at = userptr[0]; at < userptr[0] + userptr[1]; at += 2 << 20) {
    if (!file_page(at)) continue;
    static char buffer[1 << 20];
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (double until = now() + 1.001; now() < until;)
      if (read(zero, buffer, sizeof buffer) <= 0) break;
    close(zero);
    *(volatile char*)(uintptr_t)at = 1; /* the write fault that ends it: the page is no longer the file's */
    errno = EAGAIN;
    return -1;
  }
  return 0;
}
