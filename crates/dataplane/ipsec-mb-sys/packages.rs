// Part of the build scripts that look for a library of the system.

/// Has Cargo run the build script again when packages of the system have been installed: what is not found now may be there then.
/// (For a path that does not exist Cargo runs it every time, and compiles again all that depends on it.)
fn look_again_with_new_packages() {
    let databases = [
        "/var/lib/dpkg/status",
        "/usr/lib/sysimage/rpm/rpmdb.sqlite",
        "/var/lib/rpm/rpmdb.sqlite",
        "/var/lib/pacman/local",
        "/lib/apk/db/installed",
    ];
    for database in databases.into_iter().filter(|database| std::path::Path::new(database).exists()) {
        println!("cargo::rerun-if-changed={database}");
    }
}
