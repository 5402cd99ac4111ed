# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(bls USES grub SOURCES bls_fuzz.cpp)
