// SPDX-License-Identifier: Apache-2.0
// A stable sort that stays within its bounds whatever the comparison says: versions of packages are not always
// ordered without contradiction.
#pragma once

#include <iterator>
#include <list>
#include <vector>

namespace gpuhealth::grub {

template <class T, class Before>
void sort_stable(std::vector<T>& items, Before before) {
  std::list<T> list(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  list.sort(before);
  items.assign(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
}

}  // namespace gpuhealth::grub
