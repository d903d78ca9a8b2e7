"""What tools/run_tests.py gives to the integration tests."""

import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tools"))
# pylint: disable=wrong-import-position
import run_tests  # noqa: E402

BUILT = ("shellyard", "libexec/shellyard/shellyard", "tests/adversary/mask", "tests/integration/http_driver")


class WithinReach(unittest.TestCase):
    """The program below a directory that only root may enter."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)
        self.build = os.path.join(self.root, "closed", "build")
        self.public = os.path.join(self.root, "public")
        os.mkdir(self.public, 0o700)
        for name in (*BUILT, "tests/adversary/mask.p/mask.c.o"):
            path = os.path.join(self.build, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(name)
            os.chmod(path, 0o700)
            os.chmod(os.path.dirname(path), 0o700)
        os.chmod(self.root, 0o755)
        os.chmod(os.path.join(self.root, "closed"), 0o700)

    def reach(self, user):
        with mock.patch("os.geteuid", return_value=user):
            return run_tests.within_reach(os.path.join(self.build, "shellyard"), self.public)

    def test_for_root_it_is_copied_with_all_that_tests_find_beside_it(self):
        self.assertEqual(self.reach(0), os.path.join(self.public, "shellyard"))
        for name in BUILT:
            path = os.path.join(self.public, name)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), name)
            self.assertTrue(os.stat(path).st_mode & stat.S_IXOTH, name)
        self.assertEqual(stat.S_IMODE(os.stat(self.public).st_mode), 0o755)
        self.assertFalse(os.path.exists(os.path.join(self.public, "tests/adversary/mask.p")))

    def test_another_user_and_an_open_directory_need_no_copy(self):
        program = os.path.join(self.build, "shellyard")
        self.assertEqual(self.reach(1000), program)
        for folder in (os.path.dirname(self.build), self.build):
            os.chmod(folder, 0o755)
        self.assertEqual(self.reach(0), program)
        self.assertEqual(os.listdir(self.public), [])


if __name__ == "__main__":
    unittest.main()
