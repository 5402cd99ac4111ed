# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(policy USES policy SOURCES policy_fuzz.cpp)
