/* SPDX-License-Identifier: Apache-2.0 */
/* Translates TensorFlow's data types to those of libhvd. */
#include "contrib/python/native/tensorflow/dtype.h"

#include "collectives/hvd.h"
#include "contrib/python/native/tensorflow/tensorflow.h"

int hvd_dtype_of_tf(int dtype)
{
    switch ((enum TF_DataType)dtype) {
    case TF_UINT8:
        return HVD_UINT8;
    case TF_INT8:
        return HVD_INT8;
    case TF_UINT16:
        return HVD_UINT16;
    case TF_INT16:
        return HVD_INT16;
    case TF_UINT32:
        return HVD_UINT32;
    case TF_INT32:
        return HVD_INT32;
    case TF_UINT64:
        return HVD_UINT64;
    case TF_INT64:
        return HVD_INT64;
    case TF_HALF:
        return HVD_FLOAT16;
    case TF_BFLOAT16:
        return HVD_BFLOAT16;
    case TF_FLOAT:
        return HVD_FLOAT32;
    case TF_DOUBLE:
        return HVD_FLOAT64;
    case TF_BOOL:
        return HVD_BOOL;
    }
    return -1;
}
