// SPDX-License-Identifier: Apache-2.0
// A stable sort that stays within its bounds whatever the comparison says: versions of packages are not always
// ordered without contradiction.
#pragma once

#include <iterator>
#include <list>

namespace gpuhealth {

template <class Items, class Before>
void sort_stable(Items& items, Before before) {
  std::list<typename Items::value_type> list(std::make_move_iterator(items.begin()),
                                             std::make_move_iterator(items.end()));
  list.sort(before);
  items.assign(std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
}

}  // namespace gpuhealth
