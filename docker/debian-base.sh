#!/usr/bin/env bash
# A base image from Debian's packages alone, where no image can be pulled. Needs root, debootstrap and docker.
#   docker/debian-base.sh prefixscope-base
#   BASE_IMAGE=prefixscope-base docker compose build
set -euo pipefail
name=${1:?usage: debian-base.sh IMAGE [FOLDER with a finished debootstrap]}
folder=${2:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$folder"
fi
tar --directory "$folder" --numeric-owner --create \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./usr/share/doc/*' \
    --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./proc/*' --exclude='./sys/*' . \
    | docker import --change 'CMD ["bash"]' - "$name"
