//! The files of a tunnel whose keys an IKE daemon negotiates: strongSwan's, and the gateway's with `source = "xfrm"`.

use zeroize::Zeroizing;

use crate::keys::hex;
use crate::tunnel::{list, local};
use crate::{Authentication, Folder, NewFile, Random, Side, Tunnel};

/// The mark of SAs and policies that the kernel keeps and matches with nothing: no packet carries it.
const MARK: &str = "0x4642";
/// Length of a shared secret, in bytes.
const SECRET_LEN: usize = 32;

/// charon would route the peer's networks past the gateway's interface.
const STRONGSWAN: &str = "# The routes are the gateway's: those of charon would lead past its interface.\n\
                          charon {\n    install_routes = no\n}\n";

pub(crate) fn folders(tunnel: &Tunnel, random: Random<'_>) -> [Folder; 2] {
    let by_secret = tunnel.authentication() == Authentication::IkeSecret;
    let secret = by_secret.then(|| hex(SECRET_LEN, random)).flatten();
    let [one, other] = tunnel.sides();
    [(0, one, other), (1, other, one)].map(|(own, side, peer)| {
        let link = if tunnel.udp() { "beside_ike = true               # charon has the port; ESP is ours\n" } else { "" };
        let mut gateway = tunnel.head(own, link);
        gateway += &format!(
            "\n[keys]\nsource = \"xfrm\"                 # from the kernel, where charon installs SAs and policies\nmark = {MARK}  \
             \x20                # those of swanctl.conf\n"
        );
        let connection = Zeroizing::new(connection(tunnel, side, peer, secret.as_ref()));
        let file = |name: &str, text| NewFile { name: name.to_owned(), text };
        let files = vec![
            file("gateway.toml", Zeroizing::new(gateway)),
            file("swanctl.conf", connection),
            file("strongswan.conf", Zeroizing::new(STRONGSWAN.to_owned())),
        ];
        Folder { name: side.name.clone(), files, commands: commands(tunnel, side, peer) }
    })
}

/// swanctl.conf of one side.
fn connection(tunnel: &Tunnel, side: &Side, peer: &Side, secret: Option<&Zeroizing<String>>) -> String {
    let names = [&tunnel.sides()[0].name, &tunnel.sides()[1].name];
    let name = format!("{}-{}", names[0], names[1]);
    let encap = if tunnel.udp() { "\n        encap = yes" } else { "" };
    let (own, theirs) = match secret {
        Some(_) => ("auth = psk".to_owned(), "auth = psk".to_owned()),
        None => (
            format!("auth = pubkey\n            certs = {}.pem", side.name),
            format!("auth = pubkey\n            cacerts = {name}-ca.pem"),
        ),
    };
    let mut text = String::with_capacity(2048);
    text += &format!(
        "# {} here, {} behind {} ({}). Made by `forebay tunnel new`.\n\nconnections {{\n    {name} {{\n        version = 2\n        \
         local_addrs = {}\n        remote_addrs = {}{encap}\n        local {{\n            id = {}\n            {own}\n        }}\n        \
         remote {{\n            id = {}\n            {theirs}\n        }}\n",
        list(&side.networks),
        list(&peer.networks),
        peer.outer,
        peer.name,
        local(side),
        peer.outer,
        side.name,
        peer.name
    );
    text += &format!(
        "        children {{\n            {name} {{\n                local_ts = {}\n                remote_ts = {}\n                \
         esp_proposals = {}\n                # The kernel keeps what has this mark, and leaves the packets to the gateway.\n                \
         mark_in = {MARK}\n                mark_in_sa = yes\n                mark_out = {MARK}\n                \
         start_action = trap\n            }}\n        }}\n    }}\n}}\n",
        list(&side.networks).replace(", ", ","),
        list(&peer.networks).replace(", ", ","),
        tunnel.suite(),
    );
    if let Some(secret) = secret {
        text += &format!(
            "\nsecrets {{\n    ike-{name} {{\n        id-1 = {}\n        id-2 = {}\n        secret = 0x",
            names[0], names[1]
        );
        text += secret.trim_end();
        text += "\n    }\n}\n";
    }
    text
}

fn commands(tunnel: &Tunnel, side: &Side, peer: &Side) -> Vec<String> {
    let (name, peer_name) = (&side.name, &peer.name);
    let mut commands = vec![
        format!("install -m 0600 {name}/swanctl.conf /etc/swanctl/conf.d/{peer_name}.conf"),
        format!("install -m 0644 {name}/strongswan.conf /etc/strongswan.d/forebay.conf"),
    ];
    if tunnel.authentication() == Authentication::IkeCertificates {
        for (folder, mode) in [("x509ca", "0644"), ("x509", "0644"), ("private", "0600")] {
            commands.push(format!("install -m {mode} {name}/{folder}/* /etc/swanctl/{folder}/"));
        }
    }
    let modules = if local(side).is_ipv4() { "esp4" } else { "esp6" };
    commands.push(format!("printf '%s\\n' {modules} xfrm_user >>/etc/modules-load.d/forebay.conf"));
    commands.push(format!("modprobe -a {modules} xfrm_user"));
    commands.push("systemctl restart strongswan".to_owned());
    commands.extend(tunnel.commands(side, peer));
    commands.push("swanctl --load-all".to_owned());
    commands
}

impl Tunnel {
    /// The script that makes a CA and a certificate for each side with OpenSSL, where the sides authenticate by
    /// certificates. It is run in the folder above those of the sides.
    pub fn certificates(&self) -> Option<String> {
        if self.authentication() != Authentication::IkeCertificates {
            return None;
        }
        let [one, other] = self.sides().each_ref().map(|side| &side.name);
        Some(
            CERTIFICATES
                .replace("@SIDES@", &format!("{one} {other}"))
                .replace("@CA@", &format!("{one}-{other}-ca")),
        )
    }
}

const CERTIFICATES: &str = "#!/bin/sh
# Makes a certificate authority and a certificate for each side, and puts into each side's folder what its daemon needs.
# The authority's key stays here, in @CA@.key: keep it away from both gateways, or delete it.
set -eu
umask 077
curve='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $curve -keyout @CA@.key -out @CA@.pem -days 3650 -subj '/CN=@CA@' \\
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
for name in @SIDES@; do
    mkdir -p $name/x509ca $name/x509 $name/private
    openssl req $curve -keyout $name/private/$name.key -out $name.csr -subj /CN=$name
    echo subjectAltName=DNS:$name >$name.ext
    openssl x509 -req -in $name.csr -CA @CA@.pem -CAkey @CA@.key -CAcreateserial -days 825 -extfile $name.ext -out $name/x509/$name.pem
    cp @CA@.pem $name/x509ca/
    rm $name.csr $name.ext
done
";
