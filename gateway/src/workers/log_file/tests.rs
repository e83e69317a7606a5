use std::fs;

use super::*;

const ID: WorkerId = WorkerId { slot: 3, generation: 2 };

fn settings(path: &std::path::Path, max_bytes: u64) -> LogFileSettings {
    LogFileSettings { path: path.to_str().unwrap().into(), max_bytes, keep: 2 }
}

#[tokio::test]
async fn lines_are_in_the_file_of_the_worker_when_it_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("{server}-{slot}.{generation}.log"), 0);
    let file = LogFile::of(&settings, "../counter", ID).unwrap();
    file.line("one");
    file.line("");
    file.mark("process 7 started");
    file.flush().await;
    let found = fs::read_to_string(folder.path().join("_./counter-3.2.log")).unwrap();
    let lines: Vec<_> = found.lines().collect();
    assert_eq!(lines[..2], ["one", ""]);
    assert!(
        lines[2].starts_with("[gym-gateway] ") && lines[2].ends_with(" GMT: process 7 started"),
        "{found}"
    );
}

#[tokio::test]
async fn workers_of_one_path_write_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("w.log"), 4096);
    let one = LogFile::of(&settings, "a", ID).unwrap();
    let two = LogFile::of(&settings, "b", WorkerId { slot: 4, generation: 1 }).unwrap();
    assert!(Arc::ptr_eq(&one, &two));
    let line = "x".repeat(99);
    for _ in 0..50 {
        one.line(&line);
        two.line(&line);
        two.flush().await;
    }
    // A hundred lines of 100 bytes in files of 4096.
    let lines =
        ["w.log", "w.log.1", "w.log.2"].map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
    assert_eq!(lines.map(|text| text.lines().count()), [20, 40, 40]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_loses_lines_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let file = LogFile::of(&settings(&folder.path().join("file/w.log"), 0), "a", ID).unwrap();
    for _ in 0..10 {
        file.line("lost");
    }
    file.flush().await;
    assert_eq!(file.state.dropped.load(Ordering::Relaxed), 10);
    assert_eq!(file.state.waiting.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_full_disk_loses_lines_and_nothing_else() {
    let file = LogFile::of(&settings(std::path::Path::new("/dev/full"), 0), "a", ID).unwrap();
    file.line("lost");
    file.flush().await;
    file.line("lost too");
    file.flush().await;
    assert_eq!(file.state.dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn more_than_can_wait_is_dropped_and_counted() {
    let (queue, _entries) = unbounded_channel();
    let file = LogFile { queue, state: Arc::default() };
    let line = "x".repeat(1 << 20);
    for _ in 0..20 {
        file.line(&line);
    }
    assert_eq!(file.state.dropped.load(Ordering::Relaxed), 13);
    assert!(file.state.waiting.load(Ordering::Relaxed) <= LONGEST_QUEUE);
}
