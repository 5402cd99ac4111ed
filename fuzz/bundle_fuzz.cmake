# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(bundle USES policy SOURCES bundle_fuzz.cpp)
