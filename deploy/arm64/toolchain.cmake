# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds for arm64 (aarch64, ARMv8.0-A) on another machine, with Debian's cross compiler, against the libraries that
# deploy/arm64/sysroot unpacks. Tests run under qemu-aarch64. The preset arm64 uses it; a board's own libraries and core:
#   cmake --preset arm64 -DPB_SYSROOT=DIR -DCMAKE_C_FLAGS=-mcpu=cortex-a78ae
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PB_SYSROOT)

set(PB_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build-arm64-sysroot CACHE PATH "arm64 libraries and headers")
get_filename_component(CMAKE_SYSROOT ${PB_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "${CMAKE_SYSROOT} has no arm64 libraries: deploy/arm64/sysroot ${CMAKE_SYSROOT}")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# Libraries' own libraries, which programs are not linked with themselves.
add_link_options(-Wl,-rpath-link,${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu:${CMAKE_SYSROOT}/lib/aarch64-linux-gnu)

find_program(PB_QEMU qemu-aarch64 NAMES qemu-aarch64-static)
if(PB_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PB_QEMU};-L;${CMAKE_SYSROOT})
endif()
