# SPDX-License-Identifier: Apache-2.0
# The kernel log's classifier: pure text in, events out.
gpuhealth_room(klog USES core SOURCES klog/automaton.cpp klog/classifier.cpp klog/facts.cpp klog/folding.cpp klog/line.cpp klog/origin.cpp
  klog/patterns.cpp klog/pcie.cpp klog/traces.cpp klog/types.cpp)
