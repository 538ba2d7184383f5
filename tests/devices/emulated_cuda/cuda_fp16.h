#pragma once

using __half = _Float16;
