"""The checks of scikit-learn on estimators that declare their labels, and which of them cannot pass."""

from typing import Any

from sklearn.utils.estimator_checks import check_estimator

DECLARED = range(4)
"""Labels of most of the checks."""

_OTHER_LABELS = dict.fromkeys(
    [
        *["check_classifiers_classes", "check_classifiers_regression_target", "check_complex_data"],
        *["check_fit_check_is_fitted", "check_fit_idempotent", "check_n_features_in"],
        *["check_n_features_in_after_fitting", "check_regressor_data_not_an_array"],
        *["check_regressors_no_decision_function", "check_regressors_train"],
    ],
    "outside the 4 declared labels",
)

CANNOT_PASS = {
    **_OTHER_LABELS,
    "check_classifiers_train": "",  # Wants probabilities of the classes that occur, not of those that are declared.
    "check_supervised_y_2d": "expected one dimension",
}
"""Checks that are expected to fail, and the message of their error."""


def check_as_users_get_it(estimator: Any) -> int:
    """Check an estimator with these labels. Return how many checks passed. A failure must have its reason."""
    results = check_estimator(estimator, expected_failed_checks=CANNOT_PASS, on_skip=None)
    for each in results:
        if each["status"] == "xfail":
            error = each["exception"]
            assert CANNOT_PASS[each["check_name"]] in f"{error} {error.__cause__}", each["check_name"]
    return sum(each["status"] == "passed" for each in results)
