# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(default_grub USES grub SOURCES default_grub_fuzz.cpp)
