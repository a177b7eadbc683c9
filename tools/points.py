"""What careful users stumbled over, and the tests that show each point mended.

One table: `tools/scoreboard.py` prints it, `tests/unit/test_scoreboard.py` holds that every test it
names exists. A name is a file below tests/ and a function in it, or a page with one of its headings
where the point asks for words only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    text: str
    tests: tuple[str, ...]


def _point(name: str, text: str, *tests: str) -> Point:
    return Point(name, text, tests)


SUITES: Final = "unit/api/nosql/test_sdk_suites.py"
REFUSALS: Final = "unit/api/nosql/test_refusals.py"
FIXED: Final = "unit/api/nosql/test_fixed.py"
REKEY: Final = "unit/store/test_rekey.py"
ADVISE: Final = "unit/commands/test_advise.py"
SQL_ERRORS: Final = "unit/query/sql/test_errors.py"
FRAME: Final = "portal/test_frame.py"
DOCS: Final = "unit/test_docs.py"

POINTS: Final = (
    _point(
        "1",
        "a declared synthetic key: range and session token of where the item went",
        "conformance/nosql/test_synthetic.py::test_a_session_goes_on_after_writes_whose_key_the_server_filled_in",
        "conformance/nosql/test_synthetic.py::test_a_batch_whose_key_the_server_fills_in_lies_where_its_items_belong",
    ),
    _point(
        "2",
        "the largest keys are known exactly; a split or merge keeps counters, 429s and hot keys",
        "unit/store/test_usage_report.py::test_a_large_key_is_reported_though_many_others_are_used_more",
        "unit/store/test_usage_report.py::test_counters_hot_keys_and_refusals_outlive_splits_and_merges",
        "unit/partition/test_inheritance.py::test_whole_numbers_are_divided_without_a_rest",
    ),
    _point(
        "3",
        "`rekey` is a migration: follows, resumes, cuts over, verifies, warns",
        "conformance/nosql/test_rekey.py::test_keyless_to_keyed_under_load_and_through_a_kill",
        "conformance/nosql/test_rekey.py::test_the_command_says_what_it_did_and_warns",
        f"{REKEY}::test_stopped_after_any_step_it_goes_on",
        f"{REKEY}::test_a_cut_over_closes_the_source_and_loses_no_write",
        f"{REKEY}::test_a_damaged_copy_is_found_by_its_checksum_and_the_source_opened_again",
    ),
    _point(
        "4",
        "a random suffix makes no second copy on upsert or a repeated import",
        "unit/test_container.py::test_a_random_suffix_is_kept_by_replace",
        "unit/operate/test_transfer.py::test_importing_twice_into_a_random_suffix_makes_no_second_copy",
    ),
    _point(
        "5",
        "fixed containers: by portal, file, SDK and command line; clients of 2018; full",
        f"{FIXED}::test_a_client_of_2018_reads_and_writes_without_a_key",
        f"{FIXED}::test_a_client_of_2018_asks_queries_without_a_key",
        f"{FIXED}::test_a_full_fixed_container_says_that_it_is_full",
        "portal/test_explorer.py::test_a_fixed_container_without_a_key_is_made_by_hand",
        "unit/declare/test_applying.py::test_an_account_written_as_a_file_makes_the_same_account",
        "conformance/nosql/test_throughput.py::test_a_fixed_container_is_made_by_a_header",
        "unit/commands/test_resources.py::test_databases_and_containers_from_making_to_deleting",
        "unit/test_config.py::test_the_classic_profile_brings_its_sizes_unless_they_are_set",
        "conformance/nosql/test_throughput.py::test_a_container_with_a_key_grows_if_it_began_with_a_thousand",
    ),
    _point(
        "6",
        "refused: system properties as key, ids of dots, a continuation of another query, …",
        f"{REFUSALS}::test_a_partition_key_that_no_item_can_have_when_it_is_placed",
        f"{REFUSALS}::test_ids_that_clients_take_out_of_a_path",
        "unit/operate/test_transfer.py::test_a_column_of_a_csv_file_has_one_type",
        "unit/server/test_run.py::test_a_key_that_is_none_ends_with_one_line",
        f"{REFUSALS}::test_too_many_databases_and_containers",
        "unit/store/test_accounts.py::test_ten_thousand_containers_where_the_bound_allows_them",
        f"{REFUSALS}::test_a_batch_that_failed_reports_its_charge",
        f"{REFUSALS}::test_a_number_in_place_of_the_maximum_of_autoscale",
        "unit/query/test_paging.py::test_a_token_of_another_query_of_the_same_kind_is_refused",
        "unit/test_units.py::test_a_size_means_the_same_in_settings_and_in_reports",
        f"{SUITES}::test_a_hierarchical_key_with_a_missing_level_as_the_python_sdk_sends_it",
    ),
    _point(
        "7",
        "a filter on all sources of a synthetic key asks one partition",
        "unit/query/test_synthetic_narrowing.py::test_a_filter_on_all_sources_asks_one_partition",
    ),
    _point(
        "8",
        "`IN` on the partition key charges each partition once",
        "unit/query/test_many_keys.py::test_a_physical_partition_is_charged_once_however_many_keys",
    ),
    _point(
        "9",
        "duration, Content-Location, minimal answers, continue-on-error, If-None-Match",
        "conformance/nosql/test_server.py::test_every_answer_says_where_it_came_from_and_how_long_it_took",
        f"{SUITES}::test_no_bodies_when_none_are_wanted",
        f"{SUITES}::test_a_bulk_stops_at_a_failure_when_told_to",
        f"{SUITES}::test_a_copy_that_is_current_is_not_sent_again",
    ),
    _point(
        "10",
        "a last page that is exactly full is the last; no page is free",
        "unit/query/test_store.py::test_a_last_page_that_is_exactly_full_is_the_last",
        "unit/api/nosql/test_queries.py::test_full_last_pages_as_the_gateway_gives_them",
        "unit/partition/test_request_units.py::test_the_pages_of_a_query_add_up_to_the_query",
    ),
    _point(
        "11",
        "the all-versions feed: an empty `current` of a delete, the text of the service",
        f"{SUITES}::test_a_delete_in_the_feed_of_all_versions_has_an_empty_current",
        f"{SUITES}::test_all_versions_from_the_beginning_have_the_text_of_the_service",
    ),
    _point(
        "12",
        "ids of any character, `automatic`, bulk bodies, policies, a raw `?`",
        f"{REFUSALS}::test_an_id_with_any_character_is_one",
        f"{SUITES}::test_ids_as_each_gateway_of_the_service_reads_them",
        "unit/store/test_index_policy.py::test_what_is_indexed_is_indexed_automatically",
        f"{SUITES}::test_a_bulk_body_has_the_limit_of_a_request",
        f"{SUITES}::test_policies_that_the_service_takes_and_refuses",
        f"{SUITES}::test_a_question_mark_of_an_id_comes_as_it_is",
    ),
    _point(
        "13",
        "full-text order as the suites expect; a miss adds no entry to a session",
        "unit/query/functions/test_full_text.py::test_words_without_meaning_do_not_make_a_text_longer",
        f"{SUITES}::test_a_miss_in_a_range_without_writes_adds_nothing_to_a_session",
    ),
    _point(
        "14",
        "the advertised address is a setting",
        f"{SUITES}::test_the_advertised_addresses_are_regions",
    ),
    _point(
        "15",
        "queries of the .NET baselines: order by built members, correlated order, SC2221, SC2204",
        f"{SQL_ERRORS}::test_an_order_by_a_member_of_a_built_object_is_one_by_its_path",
        f"{SQL_ERRORS}::test_an_order_by_a_joined_subquery_is_refused_as_correlated",
        f"{SQL_ERRORS}::test_a_fusion_of_one_score_is_no_score",
        f"{SQL_ERRORS}::test_a_page_in_a_subquery_is_told_before_the_number_of_joins",
    ),
    _point(
        "16",
        "`armillary demo` runs its full length, and the good key looks good",
        "unit/commands/test_demo.py::test_it_runs_its_full_length_and_the_good_key_looks_good",
    ),
    _point(
        "17",
        "the query editor keeps what is typed, at any speed and delay",
        "portal/test_query.py::test_what_is_typed_is_what_runs",
    ),
    _point(
        "18",
        "installing works before the package is published; missing extras are named",
        f"{DOCS}::test_nothing_is_installed_by_a_name_that_no_registry_has_yet",
        "unit/server/test_portal_door.py::test_a_portal_that_is_not_installed_says_how",
        "unit/test_house.py::test_setup_says_what_is_missing",
    ),
    _point(
        "19",
        "the tutorial and the controls page do what they say; `cert`; an empty check fails",
        "unit/test_tutorial.py::test_every_step_does_what_the_page_says",
        "unit/api/control/test_page.py::test_the_examples_answer_as_shown",
        "unit/server/test_run.py::test_cert_is_of_a_folder_that_is_there",
        "unit/testing/test_checks.py::test_a_test_that_does_nothing_is_reported",
    ),
    _point(
        "20",
        "`advise` leads with a verdict that agrees with all numbers; `replay` fits 80 columns",
        f"{ADVISE}::test_the_verdict_comes_first_in_about_ten_lines_and_agrees_with_all_numbers",
        f"{ADVISE}::test_no_key_is_recommended_that_is_refused_and_what_to_do_is_said",
        f"{ADVISE}::test_what_is_lost_has_its_cause",
        "unit/commands/test_replay.py::test_the_table_fits_80_columns",
    ),
    _point(
        "21",
        "live load says that it writes; phones, keyboard focus, plurals",
        "portal/test_load_page.py::test_refusals_and_writes_are_those_of_the_server",
        f"{FRAME}::test_a_phone_shows_every_page_without_scrolling_sideways",
        f"{FRAME}::test_the_keyboard_focus_is_seen_wherever_it_goes",
        "portal/test_query.py::test_the_editor_has_the_focus_and_a_draft_comes_back",
        f"{FRAME}::test_one_partition_is_not_told_in_the_plural",
    ),
    _point(
        "22",
        "texts in plain English",
        f"{DOCS}::test_no_text_says_what_readers_stumbled_over",
    ),
    _point(
        "easier",
        "commands for databases and containers; the key of the environment; plain messages",
        "unit/commands/test_resources.py::test_databases_and_containers_from_making_to_deleting",
        "unit/commands/test_resources.py::test_the_key_of_the_environment_is_used_and_a_wrong_one_reported",
        "unit/commands/test_resources.py::test_messages_without_what_is_for_operators",
        "unit/commands/test_remote_items.py::test_a_container_that_is_not_there_is_said",
        "unit/store/test_bad_input.py::test_a_violation_is_refused_and_nothing_is_written",
    ),
    _point(
        "easier",
        "small containers, logs of hosts; one number for one thing",
        f"{ADVISE}::test_a_small_container_is_told_that_fan_out_hardly_matters",
        "unit/advisor/test_scenarios.py::test_the_right_key_wins",
        f"{ADVISE}::test_the_verdict_comes_first_in_about_ten_lines_and_agrees_with_all_numbers",
    ),
    _point(
        "easier",
        "one budget is shown as one; a page at once; no traceback when a browser leaves",
        "portal/test_explorer.py::test_a_database_with_throughput_shows_its_one_budget",
        "unit/server/test_portal_door.py::test_a_browser_has_a_page_to_show_while_the_process_starts",
        "portal/test_process.py::test_a_browser_that_leaves_is_no_error_in_the_log",
    ),
    _point(
        "easier",
        "the number of partitions, the classic profile and sizes are documented",
        "docs/partitions.md#how-many-there-are-at-first",
        "docs/partitions.md#what-a-size-is",
        "docs/request-units.md",
    ),
    _point(
        "easier",
        "enforcement: one line in the banner, one at the first 429",
        "unit/server/test_run.py::test_a_start_says_where_it_is_and_a_stop_leaves_nothing",
        "unit/store/test_throughput.py::test_the_first_refusal_of_a_container_says_why_and_what_to_do",
    ),
    _point(
        "must show",
        "the mechanisms, walked; the samples of the documents",
        "unit/test_examples.py::test_all_mechanisms_hold",
        "unit/test_examples.py::test_the_samples_of_the_documents",
    ),
)
