# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(klog USES klog SOURCES klog_fuzz.cpp)
