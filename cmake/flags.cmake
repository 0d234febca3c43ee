# SPDX-License-Identifier: MIT
# How everything here is compiled: `weft_flags` is for the library, its tests and benchmarks; users inherit none of it.
add_library(weft_flags INTERFACE)
target_compile_features(weft_flags INTERFACE c_std_11)
target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
# For "quoted" includes alone: <limits.h> and <sys/epoll.h> are the system's, "limits.h" and "sys/epoll.h" ours.
target_compile_options(weft_flags INTERFACE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(weft_flags INTERFACE _GNU_SOURCE)
target_compile_options(weft_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wpointer-arith -Wcast-align -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion
  $<$<C_COMPILER_ID:Clang>:-Wno-string-conversion> # part of clang's -Wconversion; weft_assert(!"what cannot be") is fine
  -fno-strict-aliasing -fno-common -fasynchronous-unwind-tables)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
target_link_libraries(weft_flags INTERFACE Threads::Threads)

option(WEFT_WERROR "Warnings are errors" OFF)
if(WEFT_WERROR)
  target_compile_options(weft_flags INTERFACE -Werror)
endif()
if(WEFT_DEBUG)
  target_compile_definitions(weft_flags INTERFACE WEFT_DEBUG=1 WEFT_EXPENSIVE=1 WEFT_FAULTS=1)
  target_compile_options(weft_flags INTERFACE -fno-omit-frame-pointer) # for whoever looks; release builds have the unwind tables
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
