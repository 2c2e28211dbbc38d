"""The checks of scikit-learn on estimators of private labels, and which of them cannot pass."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import check_estimator

FIT_PLAIN_LABELS = dict.fromkeys(
    [
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_regression_target",
        "check_classifiers_train",
        "check_complex_data",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_estimators_empty_data_messages",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
        "check_supervised_y_2d",
    ],
    "the check fits plain labels, which are refused: fit takes PrivateLabels or a release",
)
"""Checks that are expected to fail, with the reason, as scikit-learn takes them."""


def check_as_users_get_it(estimator: Any) -> int:
    """Check an estimator; return how many checks passed. The expected failures must have their reason and no other."""
    results = check_estimator(estimator, expected_failed_checks=FIT_PLAIN_LABELS, on_skip=None)
    for each in results:
        if each["status"] == "xfail":
            error = each["exception"]
            assert "expected PrivateLabels" in f"{error} {error.__cause__} {error.__context__}", each["check_name"]
    return sum(each["status"] == "passed" for each in results)
