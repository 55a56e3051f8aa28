# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages that pushbroom needs, and a function that installs the missing ones. Sourced by deploy/demo,
# deploy/package, deploy/arm64/sysroot and the scripts of the tests. CMake reads the lists PB_LIBRARIES and
# PB_LIBRARIES_TEST (deploy/packages.cmake): each entry is a module of pkg-config, with the least version if there is one,
# and the package that has it.
PB_LIBRARIES="gdal:libgdal-dev libuv:libuv1-dev yaml-0.1:libyaml-dev json-c:libjson-c-dev sqlite3>=3.35:libsqlite3-dev libjpeg:libjpeg-dev libwebp:libwebp-dev libdeflate:libdeflate-dev libzstd:libzstd-dev zlib:zlib1g-dev libsystemd:libsystemd-dev libcrypto:libssl-dev libseccomp:libseccomp-dev libpcre2-8:libpcre2-dev libxml-2.0:libxml2-dev libarchive:libarchive-dev libcurl:libcurl4-openssl-dev libmosquitto:libmosquitto-dev libmicrohttpd:libmicrohttpd-dev gnutls:libgnutls28-dev"
PB_LIBRARIES_TEST="check:check libpng:libpng-dev"
pb_packages_of() { # entries: their packages
  echo "${@#*:}"
}
PB_PACKAGES_BUILD="gcc libc6-dev cmake ninja-build pkg-config $(pb_packages_of $PB_LIBRARIES) librust-blake3-dev"
# What tests are built with, and what they run.
PB_PACKAGES_TEST_BUILD="g++ $(pb_packages_of $PB_LIBRARIES_TEST) lld"
PB_PACKAGES_TEST="git ca-certificates socat jq clang clang-format-14 clang-tidy-14 libclang-rt-14-dev lld xz-utils zstd python3 python3-gdal python3-numpy python3-scipy gdal-bin b3sum systemd procps spin mosquitto mosquitto-clients mandoc man-db bash-completion zsh python3-jsonschema python3-yaml python3-pip python3-setuptools python3-wheel"
PB_PACKAGES_DEMO="gdal-bin"
# For deploy/cluster, beside the server (pb_install_postgresql).
PB_PACKAGES_CLUSTER="pgbouncer iproute2 jq util-linux"
# To make Debian packages (deploy/package).
PB_PACKAGES_DEBIAN="build-essential debhelper fakeroot git systemd"
# To build for arm64 on another machine, and to try that; the libraries are deploy/arm64/sysroot's.
PB_PACKAGES_ARM64="gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user"

# Installs those of its arguments that are missing, and prints them. Without root it prints the command and fails. On a
# system other than Debian it prints the names and succeeds: CMake reports the libraries that are missing.
pb_install_packages() {
  local missing=() p
  if ! command -v dpkg-query >/dev/null; then
    echo "this system has no dpkg; the build needs these Debian packages under the names they have here: $*" >&2
    return 0
  fi
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "packages are missing and this is not root; run as root: apt install ${missing[*]}" >&2; return 1; }
    sudo=sudo
  fi
  echo "installing: ${missing[*]}"
  # One update, one installation; mirrors that stumble are asked again, another apt is waited for.
  local patient="-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120"
  $sudo apt-get $patient update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get $patient install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The server of PostgreSQL, which tests start for themselves: its package makes no cluster and starts no service.
pb_install_postgresql() {
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return 0
  local sudo= conf=/etc/postgresql-common/createcluster.conf rc=0
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  command -v dpkg-query >/dev/null || return 0
  pb_install_packages postgresql-common || return 1
  $sudo cp -p "$conf" "$conf.pushbroom" && echo 'create_main_cluster = false' | $sudo tee -a "$conf" >/dev/null || return 1
  pb_install_packages postgresql || rc=$?
  $sudo mv "$conf.pushbroom" "$conf"
  return $rc
}

# promtool checks the alarm rules. Its package also starts a server, so only this program is installed.
pb_install_promtool() {
  command -v promtool >/dev/null && return 0
  local sudo= dir
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  dir=$(mktemp -d)
  echo "installing: promtool, from the package prometheus"
  ( cd "$dir" && { apt-get download -qq prometheus || { $sudo apt-get update -qq && apt-get download -qq prometheus; } } &&
    dpkg-deb -x prometheus_*.deb . && $sudo install -m 755 usr/bin/promtool /usr/local/bin/promtool ) >/dev/null 2>&1
  local rc=$?
  rm -rf "$dir"
  return $rc
}
