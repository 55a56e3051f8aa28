# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by deploy/demo, deploy/arm64/sysroot and tests/run: the Debian packages that pushbroom needs, and how to get the missing ones.
PB_PACKAGES_BUILD="gcc g++ libc6-dev cmake ninja-build pkg-config git ca-certificates libgdal-dev libuv1-dev libyaml-dev libjson-c-dev libsqlite3-dev libpng-dev libjpeg-dev libwebp-dev libdeflate-dev libzstd-dev zlib1g-dev libsystemd-dev libssl-dev libseccomp-dev libpcre2-dev libxml2-dev libarchive-dev librust-blake3-dev check libcurl4-openssl-dev libmosquitto-dev"
PB_PACKAGES_TEST="clang clang-format-14 clang-tidy-14 libclang-rt-14-dev lld xz-utils python3 python3-gdal python3-numpy python3-scipy gdal-bin b3sum systemd procps spin mosquitto mosquitto-clients mandoc man-db bash-completion zsh"
PB_PACKAGES_DEMO="gdal-bin"
# To build for arm64 on another machine, and to try that; the libraries are deploy/arm64/sysroot's.
PB_PACKAGES_ARM64="gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user"

# Installs those of its arguments that are missing; says what it does, or what to do without root.
pb_install_packages() {
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing: ${missing[*]}"
  local sudo=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these Debian packages are missing and you are not root: ${missing[*]}" >&2; return 1; }
    sudo=sudo
  fi
  # One update, one installation; mirrors that stumble are asked again, another apt is waited for.
  local patient="-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120"
  $sudo apt-get $patient update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get $patient install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
