# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(grub_cfg USES grub SOURCES grub_cfg_fuzz.cpp)
