# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
#
# pb_require_packages() reports every missing tool and library of the build in one message, with the command that installs
# them. The lists are those of deploy/packages.sh:
#   PB_LIBRARIES        modules of pkg-config that pushbroom is linked with; "sqlite3>=3.35" has a least version
#   PB_LIBRARIES_TEST   those that only tests are linked with
# It runs before project() where no toolchain file sets the compiler, and therefore needs no language.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/packages.sh)
foreach(list PB_LIBRARIES PB_LIBRARIES_TEST)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/packages.sh line REGEX "^${list}=\"")
  string(REGEX MATCH "\"(.*)\"" line "${line}")
  string(REPLACE " " ";" ${list}_packages "${CMAKE_MATCH_1}")
  list(TRANSFORM ${list}_packages REPLACE ":.*" "" OUTPUT_VARIABLE ${list})
endforeach()

# Appends the package to the list unless the program is found; C and C++ compilers are also found by CC and CXX.
macro(pb_require_program variable package)
  if(NOT ${variable})
    find_program(${variable} NAMES ${ARGN})
    if(NOT ${variable})
      list(APPEND missing ${package})
      unset(${variable} CACHE) # the next call searches again
    endif()
  endif()
endmacro()

function(pb_require_packages)
  set(missing)
  set(modules ${PB_LIBRARIES_packages})
  if(PB_TESTS)
    list(APPEND modules ${PB_LIBRARIES_TEST_packages})
  endif()
  if(NOT CMAKE_C_COMPILER AND "$ENV{CC}" STREQUAL "")
    pb_require_program(PB_CC "gcc libc6-dev" cc gcc clang)
  endif()
  if(PB_TESTS AND NOT CMAKE_CXX_COMPILER AND "$ENV{CXX}" STREQUAL "")
    pb_require_program(PB_CXX g++ c++ g++ clang++)
  endif()
  if(CMAKE_GENERATOR MATCHES "Ninja")
    pb_require_program(CMAKE_MAKE_PROGRAM ninja-build ninja ninja-build)
  endif()
  pb_require_program(PKG_CONFIG_EXECUTABLE pkg-config $ENV{PKG_CONFIG} pkg-config pkgconf)
  foreach(entry ${modules})
    string(REGEX MATCH "^(.*):(.*)$" entry ${entry})
    set(module ${CMAKE_MATCH_1})
    set(package ${CMAKE_MATCH_2})
    pb_has_module(${module} found)
    if(NOT found)
      list(APPEND missing ${package})
    endif()
  endforeach()
  file(GLOB blake3 /usr/share/cargo/registry/blake3-[0-9]*/c/blake3.c)
  pb_has_module(libblake3 found)
  if(NOT blake3 AND NOT found)
    list(APPEND missing librust-blake3-dev)
    set(later "\nDebian 13 has libblake3-dev instead of librust-blake3-dev.")
  endif()
  if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "Packages are missing. On Debian 12 this command installs them:\n  sudo apt install ${missing}${later}")
  endif()
endfunction()

function(pb_has_module module out_found)
  set(${out_found} OFF PARENT_SCOPE)
  if(PKG_CONFIG_EXECUTABLE)
    string(REGEX REPLACE "[<>=]+" " \\0 " module ${module}) # one argument: the module, the comparison, the version
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --exists ${module} RESULT_VARIABLE rc ERROR_QUIET)
    if(rc EQUAL 0)
      set(${out_found} ON PARENT_SCOPE)
    endif()
  endif()
endfunction()
