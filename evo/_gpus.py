"""Prints the CUDA devices as JSON. Run as a program by ``evo.machine``; imports nothing of ours."""

from __future__ import annotations

import ctypes
import json

ATTRIBUTES = {"major": 75, "minor": 76, "sms": 16, "shared_per_block": 97, "l2": 38}


def devices() -> list[dict[str, int | str]]:
    """Each device with its name, attributes and memory; none without a driver or a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [device(driver, index) for index in range(count.value)]


def device(driver: ctypes.CDLL, index: int) -> dict[str, int | str]:
    """What the driver says of one device."""
    handle, number, memory = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_size_t(0)
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(handle), index)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    found: dict[str, int | str] = {"name": name.value.decode(), "memory": memory.value}
    for key, attribute in ATTRIBUTES.items():
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, handle)
        found[key] = number.value
    return found


if __name__ == "__main__":
    print(json.dumps(devices()))
