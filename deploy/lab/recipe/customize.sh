# Runs inside the new root. @ROOT@ and @ESP@ are the file systems' identities.
set -eu

echo debian >/etc/hostname
printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n' >/etc/hosts
mkdir -p /boot/efi
cat >/etc/fstab <<END
UUID=@ROOT@ /         ext4 errors=remount-ro 0 1
UUID=@ESP@  /boot/efi vfat umask=0077,nofail 0 0
END
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf

# Every machine gets its own identity at its first start.
rm -f /etc/ssh/ssh_host_* /var/lib/dbus/machine-id /var/lib/systemd/random-seed
: >/etc/machine-id

systemctl enable --quiet systemd-networkd systemd-resolved ssh
systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer

# One network interface that works is enough, and a cable that is out must not
# hold the start for two minutes.
mkdir -p /etc/systemd/system/systemd-networkd-wait-online.service.d
cat >/etc/systemd/system/systemd-networkd-wait-online.service.d/lab.conf <<END
[Service]
ExecStart=
ExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30
END

# RSA keys take an emulated processor many seconds.
mkdir -p /etc/cloud/cloud.cfg.d
cat >/etc/cloud/cloud.cfg.d/10_lab.cfg <<END
ssh_genkeytypes: [ed25519, ecdsa]
END

# GRUB reads fixed names: they follow the newest kernel.
mkdir -p /boot/grub /boot/efi/EFI/BOOT /boot/efi/EFI/debian
cat >/boot/grub/grub.cfg <<END
if [ "\$grub_platform" = pc ]; then
	serial --unit=0 --speed=115200
	terminal_output console serial
fi
echo 'GRUB starts Debian'
linux /vmlinuz root=UUID=@ROOT@ ro console=tty0 console=ttyS0,115200
initrd /initrd.img
boot
END
sed -i 's/^COMPRESS=.*/COMPRESS=zstd/' /etc/initramfs-tools/initramfs.conf
update-initramfs -u

# The signed GRUB looks for its configuration here.
cp /usr/lib/shim/shimx64.efi.signed /boot/efi/EFI/BOOT/BOOTX64.EFI
cp /usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed /boot/efi/EFI/BOOT/grubx64.efi
cat >/boot/efi/EFI/debian/grub.cfg <<END
search.fs_uuid @ROOT@ root
set prefix=(\$root)/boot/grub
configfile \$prefix/grub.cfg
END
cp /boot/efi/EFI/debian/grub.cfg /tmp/bios.cfg
grub-mkimage -O i386-pc -o /tmp/core.img -p /boot/grub -c /tmp/bios.cfg \
	biosdisk part_gpt ext2 search search_fs_uuid normal configfile linux echo test serial terminal
cp /usr/lib/grub/i386-pc/boot.img /tmp/boot.img
rm /tmp/bios.cfg
