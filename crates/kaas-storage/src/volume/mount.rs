//! Start-up's questions to the mount (rule 12 of the volume contract): is everything on one file system, is it of a kind
//! on which the contract was shown to hold, and is it mounted so that a write either happens or fails for good.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Statx, StatxFlags, statx};

use crate::error::StorageError;
use crate::layout;

/// Holds "the one broker of this client host" for an NFS mount while the volume is open.
#[derive(Default)]
pub(super) struct ClientClaim(Mutex<Option<UnixListener>>);

pub(super) fn check(
    path: &Path,
    root: BorrowedFd<'_>,
    client: &ClientClaim,
) -> Result<(), StorageError> {
    let refuse = |(why, remedy): (String, String)| StorageError::Mount {
        root: path.to_string_lossy().into_owned(),
        why,
        remedy,
    };
    let unreadable =
        |what: &'static str| move |error| StorageError::from_io("inspect", what, error);

    let stat = |name: &str| {
        let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        statx(root, name, AtFlags::empty(), mask).map_err(io::Error::from)
    };
    let top = stat(".").map_err(unreadable("the volume's root"))?;
    for directory in layout::DIRECTORIES {
        let inner = stat(directory).map_err(unreadable(directory))?;
        if mount_of(&inner) != mount_of(&top) {
            return Err(refuse((
                format!(
                    "{directory} is on another mount than the root, and a rename cannot cross mounts"
                ),
                format!("unmount what is mounted at or above {directory}"),
            )));
        }
    }

    // On a mount that folds case the shouted name leads to the same directory.
    if let Ok(shouted) = stat(&layout::CLUSTER.to_uppercase())
        && (mount_of(&shouted), shouted.stx_ino)
            == (
                mount_of(&top),
                stat(layout::CLUSTER).map_or(0, |own| own.stx_ino),
            )
    {
        return Err(refuse((
            "it does not tell upper from lower case, so two group ids could share one file"
                .to_owned(),
            "use a case-sensitive file system".to_owned(),
        )));
    }

    let table = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(unreadable("/proc/self/mountinfo"))?;
    // A kernel that gives no mount id (before 5.8), or a sandbox that hides the table, leaves nothing to judge by.
    let Some(mount) = table
        .lines()
        .filter_map(Mount::parse)
        .find(|mount| mount.is(&top))
    else {
        tracing::warn!(path = %path.display(), "the kind of the volume's mount is unknown; its options were not checked");
        return Ok(());
    };
    mount.judge().map_err(refuse)?;
    if mount.is_nfs() {
        client.take(&mount).map_err(refuse)?;
    }
    Ok(())
}

/// What must be equal for two names to lie on one mount.
fn mount_of(stat: &Statx) -> (u32, u32, u64) {
    let id = if has_mount_id(stat) {
        stat.stx_mnt_id
    } else {
        0
    };
    (stat.stx_dev_major, stat.stx_dev_minor, id)
}

fn has_mount_id(stat: &Statx) -> bool {
    StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID)
}

/// A line of `/proc/self/mountinfo`, as far as it matters here.
#[derive(Debug, PartialEq)]
struct Mount<'a> {
    id: u64,
    device: (u32, u32),
    point: &'a str,
    kind: &'a str,
    source: &'a str,
    options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    /// `id parent major:minor root point options [optional…] - kind source super-options`
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ');
        let id = mount.next()?.parse().ok()?;
        let (major, minor) = mount.nth(1)?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let point = mount.nth(1)?;
        let mut options: Vec<&str> = mount.next()?.split(',').collect();
        let mut file_system = file_system.split(' ');
        let (kind, source) = (file_system.next()?, file_system.next()?);
        options.extend(file_system.next().unwrap_or("").split(','));
        Some(Mount {
            id,
            device,
            point,
            kind,
            source,
            options,
        })
    }

    fn is(&self, stat: &Statx) -> bool {
        if has_mount_id(stat) {
            self.id == stat.stx_mnt_id
        } else {
            self.device == (stat.stx_dev_major, stat.stx_dev_minor)
        }
    }

    fn is_nfs(&self) -> bool {
        matches!(self.kind, "nfs" | "nfs4")
    }

    /// Why this mount must not be used, and what to do instead.
    fn judge(&self) -> Result<(), (String, String)> {
        const SMB: [&str; 5] = ["cifs", "smb3", "smbfs", "fuse.smbnetfs", "fuse.usmb"];
        const OBJECT_STORES: [&str; 12] = [
            "fuse.s3fs",
            "fuse.mount-s3",
            "fuse.mountpoint-s3",
            "fuse.goofys",
            "fuse.geesefs",
            "fuse.gcsfuse",
            "fuse.blobfuse",
            "fuse.blobfuse2",
            "fuse.rclone",
            "fuse.ossfs",
            "fuse.cosfs",
            "fuse.obsfs",
        ];
        let kind = self.kind;
        let instead = "use a local file system, NFS mounted `hard`, CephFS or GlusterFS".to_owned();
        if SMB.contains(&kind) {
            return Err((
                format!("{kind} renames are not atomic for other clients"),
                instead,
            ));
        }
        // Some object-store mounts hide behind the bare type and tell themselves by their source.
        let hidden = kind == "fuse"
            && OBJECT_STORES
                .iter()
                .any(|store| store.strip_prefix("fuse.") == Some(self.source));
        if OBJECT_STORES.contains(&kind) || hidden {
            return Err((
                format!(
                    "{kind} ({}) has no atomic rename over an object store",
                    self.source
                ),
                instead,
            ));
        }
        if self.is_nfs()
            && let Some(soft) = self
                .options
                .iter()
                .find(|option| matches!(**option, "soft" | "softerr"))
        {
            return Err((
                format!(
                    "NFS at {} is mounted `{soft}`, so a write may fail here and still happen on the server",
                    self.point
                ),
                format!(
                    "remount {} with the option `hard` in place of `{soft}`",
                    self.point
                ),
            ));
        }
        Ok(())
    }
}

impl ClientClaim {
    /// An NFS server knows clients, not processes: one client's cached names would serve two brokers of a host alike.
    /// The claim is an abstract socket, which the kernel takes back when the process dies.
    fn take(&self, mount: &Mount<'_>) -> Result<(), (String, String)> {
        let mut held = self.0.lock();
        if held.is_some() {
            return Ok(());
        }
        let name = format!("kaas-nfs-client-{}-{}", mount.device.0, mount.device.1);
        let claim =
            SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name));
        match claim {
            Ok(listener) => {
                *held = Some(listener);
                Ok(())
            }
            Err(error) => Err((
                format!(
                    "another broker on this host seems to use the same NFS mount {} ({error})",
                    mount.point
                ),
                "run at most one broker per NFS client host, or stop the other one first"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(line: &str) -> Result<(), (String, String)> {
        Mount::parse(line).expect("a line of mountinfo").judge()
    }

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_optional_fields() {
        let mount = Mount::parse(
            "36 35 98:0 /mnt1 /data rw,noatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=continue",
        );
        assert_eq!(
            mount,
            Some(Mount {
                id: 36,
                device: (98, 0),
                point: "/data",
                kind: "ext4",
                source: "/dev/sda1",
                options: vec!["rw", "noatime", "rw", "errors=continue"],
            })
        );
    }

    #[test]
    fn local_and_hard_nfs_mounts_are_accepted() {
        for line in [
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
            "40 27 0:50 / /data rw,relatime - nfs4 server:/x rw,vers=4.2,hard,proto=tcp,timeo=600",
            "41 27 0:51 / /data rw,relatime - ceph 10.0.0.1:/ rw,name=admin",
            "42 27 0:52 / /data rw,relatime - fuse.glusterfs server:/vol rw,user_id=0",
        ] {
            assert_eq!(judge(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn a_soft_nfs_mount_is_refused_and_the_message_says_how_to_remount() {
        for option in ["soft", "softerr"] {
            let line = format!(
                "40 27 0:50 / /data rw,relatime - nfs server:/x rw,vers=3,{option},proto=tcp"
            );
            let (why, remedy) = judge(&line).unwrap_err();
            assert!(why.contains(&format!("`{option}`")), "{why}");
            assert_eq!(
                remedy,
                format!("remount /data with the option `hard` in place of `{option}`")
            );
        }
    }

    #[test]
    fn smb_and_object_store_mounts_are_refused() {
        for line in [
            "40 27 0:50 / /data rw - cifs //server/share rw,vers=3.1.1",
            "40 27 0:50 / /data rw - smb3 //server/share rw",
            "40 27 0:50 / /data rw - fuse.s3fs s3fs rw",
            "40 27 0:50 / /data rw - fuse.gcsfuse bucket rw",
            "40 27 0:50 / /data rw - fuse mountpoint-s3 rw",
        ] {
            assert!(judge(line).is_err(), "{line}");
        }
    }
}
