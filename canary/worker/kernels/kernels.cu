// SPDX-License-Identifier: Apache-2.0
// kernels.ptx is made of this, once:
//   nvcc -ptx -arch=compute_75 --fmad=false -o - kernels.cu | kernels/lower-ptx > kernels.ptx
// The instructions are those of the first 64-bit PTX; lower-ptx writes the old version and target that say so, because
// a driver refuses PTX that is newer than itself (NVIDIA/nvbandwidth#61).
#include "kernels.gpu"
