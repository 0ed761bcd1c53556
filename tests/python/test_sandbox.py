"""What is asked of a kernel, by its version; that a kernel holds to it is tried through the gateway."""

import unittest

import kit  # puts the package on the path
from toolcrib._sandbox import NoSandbox, _rights


class Kernels(unittest.TestCase):
    def test_without_landlock_there_is_no_sandbox_of_any_kind(self):
        for version in (-1, 0):
            for network in (True, False):
                with self.assertRaisesRegex(NoSandbox, "no Landlock"):
                    _rights(version, network)

    def test_a_kernel_that_knows_of_files_alone_will_do_only_where_that_is_said(self):
        for version in (1, 2, 3):
            with self.assertRaisesRegex(NoSandbox, "cannot keep tools from the network.*sandbox: files"):
                _rights(version, True)
            everything, rules, size = _rights(version, False)
            self.assertEqual((rules.files, rules.net, rules.scope, size), (everything, 0, 0, 8))

    def test_a_kernel_that_knows_of_connections_takes_them_away_either_way(self):
        for version, size in ((4, 16), (5, 16), (6, 24), (7, 24)):
            for network in (True, False):
                _, rules, found = _rights(version, network)
                self.assertEqual((rules.net, found), (3, size))


if __name__ == "__main__":
    unittest.main()
