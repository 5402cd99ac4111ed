# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(advisories USES grub SOURCES advisories_fuzz.cpp)
