# Runs inside the new root. @ROOT@ and @ESP@ are the file systems' identities; @LOADER@,
# @SHIM@, @GRUB@, @SIGNED@ and @SERIAL@ are the architecture's names.
set -eu

echo debian >/etc/hostname
printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n' >/etc/hosts
mkdir -p /boot/efi
cat >/etc/fstab <<END
UUID=@ROOT@ /         ext4 errors=remount-ro 0 0
UUID=@ESP@  /boot/efi vfat umask=0077,nofail 0 0
END
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf

# Every machine gets its own identity at its first start.
rm -f /etc/ssh/ssh_host_* /var/lib/dbus/machine-id /var/lib/systemd/random-seed
: >/etc/machine-id

systemctl enable --quiet systemd-networkd systemd-resolved ssh
systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer e2scrub_reap.service e2scrub_all.timer

# One network interface that works is enough, and a cable that is out must not
# hold the start for two minutes.
mkdir -p /etc/systemd/system/systemd-networkd-wait-online.service.d
cat >/etc/systemd/system/systemd-networkd-wait-online.service.d/lab.conf <<END
[Service]
ExecStart=
ExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30
END

# An emulated processor needs seconds for each of cloud-init's modules, and many
# for an RSA key. Left out is what serves other distributions and services.
mkdir -p /etc/cloud/cloud.cfg.d
cat >/etc/cloud/cloud.cfg.d/10_lab.cfg <<END
ssh_genkeytypes: [ed25519, ecdsa]
cloud_init_modules:
  [bootcmd, write-files, growpart, resizefs, disk_setup, mounts, set_hostname, update_hostname, update_etc_hosts, ca-certs, users-groups, ssh]
cloud_config_modules: [set-passwords, ntp, timezone, runcmd]
cloud_final_modules:
  [package-update-upgrade-install, write-files-deferred, scripts-vendor, scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user,
   phone-home, final-message, power-state-change]
END

# GRUB reads fixed names: they follow the newest kernel. Guards against other
# tenants of the processor cost an emulated one a quarter of its speed.
mkdir -p /boot/grub /boot/efi/EFI/BOOT /boot/efi/EFI/debian
cat >/boot/grub/grub.cfg <<END
if [ "\$grub_platform" = pc ]; then
	serial --unit=0 --speed=115200
	terminal_output console serial
fi
echo 'GRUB starts Debian'
linux /vmlinuz root=UUID=@ROOT@ ro mitigations=off console=tty0 console=@SERIAL@,115200
initrd /initrd.img
boot
END

# The initramfs holds what a root on virtio or NVMe needs; GRUB reads it through
# the BIOS, a few kilobytes at a time.
cat >/etc/initramfs-tools/conf.d/lab <<END
COMPRESS=zstd
MODULES=list
END
printf '%s\n' virtio_pci virtio_blk virtio_scsi sd_mod nvme ext4 >>/etc/initramfs-tools/modules
update-initramfs -u

# The signed GRUB looks for its configuration here.
cp /usr/lib/shim/@SHIM@.signed /boot/efi/EFI/BOOT/@LOADER@
cp /usr/lib/grub/@SIGNED@/@GRUB@.signed /boot/efi/EFI/BOOT/@GRUB@
cat >/boot/efi/EFI/debian/grub.cfg <<END
search.fs_uuid @ROOT@ root
set prefix=(\$root)/boot/grub
configfile \$prefix/grub.cfg
END
