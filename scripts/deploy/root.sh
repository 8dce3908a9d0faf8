#!/bin/sh
# Copies the executable and its runtime dependencies into a folder that becomes the root of its file system:
#   sh scripts/deploy/root.sh EXECUTABLE FOLDER
# The folder contains only the libraries that the executable requires, and two short files for users and host lookup.
set -eu
executable=$1
folder=$2

mkdir -p "$folder/etc" "$folder/data"
cp "$executable" "$folder/tollgate"
chmod 0755 "$folder" "$folder/etc" "$folder/tollgate"
# Copy the loader and the libraries, each to the path where it is expected.
ldd "$executable" | grep -o '/[^ ]*\.so[^ ]*' | while read -r library; do
  mkdir -p "$folder$(dirname "$library")"
  cp -L "$library" "$folder$library"
done
echo 'tollgate:x:10001:10001::/data:/nonexistent' >"$folder/etc/passwd"
# Host lookup uses the file first, then the network.
echo 'hosts: files dns' >"$folder/etc/nsswitch.conf"
chmod 0700 "$folder/data"
