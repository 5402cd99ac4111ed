// SPDX-License-Identifier: Apache-2.0
// usage: neighbour SECONDS: a job of short steps on the GPU, as inference makes them: copy in, compute, copy out. Prints
// when it began (CLOCK_MONOTONIC, s), then each step's time in us.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

__global__ void work(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = data[i];
  for (int k = 0; k < 2000; ++k) x = x * 1.0001f + 0.5f;
  data[i] = x;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  const int n = 1 << 20;
  printf("began %.6f\n", now());
  fflush(stdout);
  float *device = nullptr, *host = nullptr;
  if (cudaMalloc(&device, n * sizeof(float)) != cudaSuccess || cudaMallocHost(&host, n * sizeof(float)) != cudaSuccess) return 1;
  std::vector<double> steps;
  const double until = now() + seconds;
  for (int i = 0; now() < until; ++i) {
    const double start = now();
    cudaMemcpyAsync(device, host, n * sizeof(float), cudaMemcpyHostToDevice);
    work<<<n / 256, 256>>>(device, n);
    cudaMemcpyAsync(host, device, n * sizeof(float), cudaMemcpyDeviceToHost);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    if (i >= 200) steps.push_back(1e6 * (now() - start));
  }
  for (const double s : steps) printf("%.1f\n", s);
}
