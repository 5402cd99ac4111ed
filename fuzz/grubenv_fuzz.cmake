# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(grubenv USES grub SOURCES grubenv_fuzz.cpp)
