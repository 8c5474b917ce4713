/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floating-point numbers. */
#ifndef OM_HALF_H
#define OM_HALF_H

#include "onnxmem/tensor.h"

/* Conversions of the 16-bit float types; rounding to nearest, ties to even. */
float om_half_to_float(uint16_t h);
uint16_t om_float_to_half(float f);
float om_bfloat_to_float(uint16_t h);
uint16_t om_float_to_bfloat(float f);

#endif
