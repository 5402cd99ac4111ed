// SPDX-License-Identifier: Apache-2.0
// Tells when something changes in folders (inotify). Bursts become one call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class FolderWatch {
 public:
  // `changed` is called when things have been quiet for `quiet`. Where inotify cannot be used, never.
  FolderWatch(boost::asio::io_context& io, std::chrono::milliseconds quiet, std::function<void()> changed);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // These, and no others. One that is not there is looked for with the next call.
  void watch(const std::vector<std::string>& folders);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
