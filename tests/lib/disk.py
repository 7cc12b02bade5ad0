# SPDX-License-Identifier: MIT
"""A file system of its own, on a loop device that counts what is asked of it."""
import os
import subprocess

import tap


def _run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Disk:
    """@files, {name: path}, copied to a fresh ext4; mounted at .folder inside of `with`."""

    def __init__(self, folder, files):
        self.image = os.path.join(folder, "image")
        self.folder = os.path.join(folder, "disk")
        self.files = files
        self.device = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise tap.Skip("only root may mount")
        size = sum(os.path.getsize(path) for path in self.files.values())
        with open(self.image, "wb") as image:
            image.truncate(size + size // 4 + (32 << 20))
        os.mkdir(self.folder)
        _run("mkfs.ext4", "-q", self.image)
        try:
            self._mount()
            for name, path in self.files.items():
                _run("cp", path, os.path.join(self.folder, name))
        except subprocess.CalledProcessError as error:
            self._unmount()
            raise tap.Skip(f"no loop device can be mounted: {error.stderr.strip()}") from error
        except BaseException:
            self._unmount()
            raise
        return self

    def __exit__(self, *_):
        self._unmount()

    def _mount(self):
        self.device = _run("losetup", "--find", "--show", self.image)
        _run("mount", self.device, self.folder)

    def _unmount(self):
        if os.path.ismount(self.folder):
            _run("umount", self.folder)
        if self.device:
            _run("losetup", "-d", self.device)
            self.device = None

    def forget(self):
        """Nothing of the files is in memory afterwards."""
        self._unmount()
        self._mount()

    def counts(self):
        """Requests to read that the device has had, and KiB that they read."""
        with open(f"/sys/block/{os.path.basename(self.device)}/stat", encoding="ascii") as stat:
            fields = stat.read().split()
        return int(fields[0]), int(fields[2]) // 2
