from tests.app_bench import bench, server

__all__ = ["bench", "server"]
