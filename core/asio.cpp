// SPDX-License-Identifier: Apache-2.0
// The one translation unit that compiles Boost.Asio.
#include <boost/asio/impl/src.hpp>
