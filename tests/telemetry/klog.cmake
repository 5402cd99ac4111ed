# SPDX-License-Identifier: Apache-2.0
gpuhealth_test(klog USES klog SOURCES klog_captures_test.cpp klog_docs_test.cpp klog_fold_test.cpp klog_line_test.cpp klog_pcie_test.cpp
  klog_trace_test.cpp klog_traps_test.cpp klog_wordings_test.cpp)
target_include_directories(test_klog PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
