/* AES-GCM against NIST's CAVP vectors (gcmEncryptExtIV128, 192 and 256: the first of each length with nonces of
 * 96 bits, tags of 128 and at most 16 bytes of AAD). */
#include "check.h"
#include "gcm.h"

/* Key, nonce, AAD, plaintext, ciphertext, tag. */
static const char *const vectors[][6] = {
    { "11754cd72aec309bf52f7687212e8957", "3c819d9a9bed087615030b65", "", "", "", "250327c674aaf477aef2675748cf6971" },
    { "77be63708971c4e240d1cb79e8d77feb", "e0e00f19fed7ba0136a797f3", "7a43ec1d9c0a5a78a0b16533a6213cab", "", "",
      "209fcc8d3675ed938e9c7166709dd946" },
    { "7fddb57453c241d03efbed3ac44e371c", "ee283a3fc75575e33efd4887", "", "d5de42b461646c255c87bd2962d3b9a2",
      "2ccda4a5415cb91e135c2a0f78c9b2fd", "b36d1df9b9d5e596f83e8b7f52971cb3" },
    { "c939cc13397c1d37de6ae0e1cb7c423c", "b3d8cc017cbb89b39e0f67e2", "24825602bd12a984e0092d3e448eda5f",
      "c3b3c41f113a31b73d9a5cd432103069", "93fe7d9e9bfd10348a5606e5cafa7354", "0032a1dc85f1c9786925a2e71d8272dd" },
    { "fe9bb47deb3a61e423c2231841cfd1fb", "4d328eb776f500a2f7fb47aa", "", "f1cc3818e421876bb6b8bbd6c9",
      "b88c5c1977b35b517b0aeae967", "43fd4727fe5cdb4b5b42818dea7ef8c9" },
    { "dfefde23c6122bf0370ab5890e804b73", "92d6a8029990670f16de79e2", "a2b16d78251de6c191ce350e5c5ef242",
      "64260a8c287de978e96c7521d0", "bf78de948a847c173649d4b4d0", "9da3829968cdc50794d1c30d41cd4515" },
    { "9971071059abc009e4f2bd69869db338", "07a9a95ea3821e9c13c63251", "",
      "f54bc3501fed4f6f6dfb5ea80106df0bd836e6826225b75c0222f6e859b35983",
      "0556c159f84ef36cb1602b4526b12009c775611bffb64dc0d9ca9297cd2c6a01", "7870d9117f54811a346970f1de090c41" },
    { "298efa1ccf29cf62ae6824bfc19557fc", "6f58a93fe1d207fae4ed2f6d", "021fafd238463973ffe80256e5b1c6b1",
      "cc38bccd6bc536ad919b1395f5d63801f99f8068d65ca5ac63872daf16b93901",
      "dfce4e9cd291103d7fe4e63351d9e79d3dfd391e3267104658212da96521b7db", "542465ef599316f73a7a560509a2d9f2" },
    { "594157ec4693202b030f33798b07176d", "49b12054082660803a1df3df", "",
      "3feef98a976a1bd634f364ac428bb59cd51fb159ec1789946918dbd50ea6c9d594a3a31a5269b0da6936c29d063a5fa2"
      "cc8a1c",
      "c1b7a46a335f23d65b8db4008a49796906e225474f4fe7d39e55bf2efd97fd82d4167de082ae30fa01e465a601235d8d"
      "68bc69",
      "ba92d3661ce8b04687e8788d55417dc2" },
    { "b61553bb854895b929751cd0c5f80384", "8863f999ae64e55d0bbd7457", "d914b5f2d1b08ce53ea59cb310587245",
      "9b1b113217d0c4ea7943cf123c69c6ad2e3c97368c51c9754145d155dde1ee8640c8cafff17a5c9737d26a137eee4bf3"
      "69096d",
      "acfab4632b8a25805112f13d85e082bc89dc49bd92164fa8a2dad242c3a1b2f2696f2fdff579025f3f146ea97da3e47d"
      "c34b65",
      "5d9b5f4a9868c1c69cbd6fd851f01340" },
    { "aa740abfadcda779220d3b406c5d7ec09a77fe9d94104539", "ab2265b4c168955561f04315", "", "", "",
      "f149e2b5f0adaa9842ca5f45b768a8fc" },
    { "41c5da8667ef725220ffe39ae0ac590ac9fca729ab60ada0", "05ad13a5e2c2ab667e1a6fbc",
      "8b5c124bef6e2f0fe4d8c95cd5fa4cf1", "", "", "204bdb1bd62154bf08922aaa54eed705" },
    { "fbc0b4c56a714c83217b2d1bcadd2ed2e9efb0dcac6cc19f", "5f4b43e811da9c470d6a9b01", "",
      "d2ae38c4375954835d75b8e4c2f9bbb4", "69482957e6be5c54882d00314e0259cf", "191e9f29bef63a26860c1e020a21137e" },
    { "6f44f52c2f62dae4e8684bd2bc7d16ee7c557330305a790d", "9ae35825d7c7edc9a39a0732",
      "1b4236b846fc2a0f782881ba48a067e9", "37222d30895eb95884bbbbaee4d9cae1", "a54b5da33fc1196a8ef31a5321bfcaeb",
      "1c198086450ae1834dd6c2636796bce2" },
    { "60991b595b0271efc87f21a979d61ca8fb11ccfcc4726819", "0ed37872b369e4fdc3ea4090", "", "786fd2bc953160d5fd30e4e8cb",
      "685c7ebd80c7e2a5a586f10935", "f1712cc78b4b3ab7e79e7eda1efa2f72" },
    { "5daa8910d9dc5068f2f55c163986d071452344a5eac5a805", "8f88d70e250dbf1282413fd7",
      "3b3bbb2ccd76236f074eecc19f341057", "4235e42f32cff44a507dd8a366", "e92df9d2fd436ed254fa92789c",
      "4cdddb4a9546a8d73afc9f5e46a926f3" },
    { "165c4aa5d78ee15f297d5d2eae39eaac3480fc50a6d9a98e", "0e321e714c4a262350fc50fc", "",
      "5afa41efe94c0193fc9fe62fd6cfacc8868725ab4965a5c9132d74179f0aee72",
      "5ab8ac904e7d4a627ee327b4629b686319936abc709e8c0fb6817cb16d0c4f76", "62bfea782d6a05cd04030c433639b969" },
    { "0d4a900d1b0bb5b7be2438c2ba48fc45134cc198108cf885", "0bd44ff4d20c15d04fc61ee7",
      "9ea42c50a7fdb85e141aa084b46bde12", "567ccb3fa0db89708af3ff2bb029ddec52c66947585d291a28564bf56db706f7",
      "2f8a42cd183b0314fd20a3d97d9e0c5217b0f088d2ca87a8290d4bae69ad83f5", "de414592d77f2f0b50df4aec714fad43" },
    { "b33a0d6ecb0a2c4e4deab7e065227f7a5b056f96ecab3761", "464e4ea75b77e7a1fa330372", "",
      "a8beff90519d7e537b0f95f97b9ebcd4d71fce3e59f87cc43cc4f7453319c973a4dd47cf4d7062b001e52828ee545a0a"
      "e27e46",
      "a6f8564d9a4913fb366f83289ffebc7eeb3e240ac2f4030883a28e2778458894f7ad7d8f3e9a8ce32b27a0249f0c2245"
      "4d7c0d",
      "d094b97785b7e0b09dc0008f4f0da9d7" },
    { "a4c3933b52f82bd5da1e61a6f5bcc3af935d163099327a4d", "15f23f33cfb1435a26393e70",
      "b71089bef951b6a411748eec346beeeb",
      "53b155426e5d8a322e3f973b4bd4123d2da0be6d64c8ee605e81db52dc0ae908ce4c9fc321750c99e6cedc82c5ff5f1d"
      "0d3ed9",
      "663f2adbbf31c4c974943346cbfbc320790dbe837d6db659aa8b457f87d8cbd6fed05bf344be2803754bb1e18286c763"
      "d33880",
      "289d9544080321ffd45be9431ed4adf6" },
    { "b52c505a37d78eda5dd34f20c22540ea1b58963cf8e5bf8ffa85f9f2492505b4", "516c33929df5a3284ff463d7", "", "", "",
      "bdc1ac884d332457a1d2664f168c76f0" },
    { "78dc4e0aaf52d935c3c01eea57428f00ca1fd475f5da86a49c8dd73d68c8e223", "d79cf22d504cc793c3fb6c8a",
      "b96baa8c1c75a671bfb2d08d06be5f36", "", "", "3e5d486aa2e30b22e040b85723a06e76" },
    { "31bdadd96698c204aa9ce1448ea94ae1fb4a9a0b3c9d773b51bb1822666b8f22", "0d18e06c7c725ac9e362e1ce", "",
      "2db5168e932556f8089a0622981d017d", "fa4362189661d163fcd6a56d8bf0405a", "d636ac1bbedd5cc3ee727dc2ab4a9489" },
    { "92e11dcdaa866f5ce790fd24501f92509aacf4cb8b1339d50c9c1240935dd08b", "ac93a1a6145299bde902f21a",
      "1e0889016f67601c8ebea4943bc23ad6", "2d71bcfa914e4ac045b2aa60955fad24", "8995ae2e6df3dbf96fac7b7137bae67f",
      "eca5aa77d51d4a0a14d9c51e1da474ab" },
    { "82c4f12eeec3b2d3d157b0f992d292b237478d2cecc1d5f161389b97f999057a", "7b40b20f5f397177990ef2d1", "",
      "982a296ee1cd7086afad976945", "ec8e05a0471d6b43a59ca5335f", "113ddeafc62373cac2f5951bb9165249" },
    { "dad89d9be9bba138cdcf8752c45b579d7e27c3dbb40f53e771dd8cfd500aa2d5", "cfb2aec82cfa6c7d89ee72ff",
      "6e43784a91851a77667a02198e28dc32", "b526ba1050177d05b0f72f8d67", "8b29e66e924ecae84f6d8f7d68",
      "1e365805c8f28b2ed8a5cadfd9079158" },
    { "268ed1b5d7c9c7304f9cae5fc437b4cd3aebe2ec65f0d85c3918d3d3b5bba89b", "9ed9d8180564e0e945f5e5d4", "",
      "fe29a40d8ebf57262bdb87191d01843f4ca4b2de97d88273154a0b7d9e2fdb80",
      "791a4a026f16f3a5ea06274bf02baab469860abde5e645f3dd473a5acddeecfc", "05b2b74db0662550435ef1900e136b15" },
    { "37ccdba1d929d6436c16bba5b5ff34deec88ed7df3d15d0f4ddf80c0c731ee1f", "5c1b21c8998ed6299006d3f9",
      "22ed235946235a85a45bc5fad7140bfa", "ad4260e3cdc76bcc10c7b2c06b80b3be948258e5ef20c508a81f51e96a518388",
      "3b335f8b08d33ccdcad228a74700f1007542a4d1e7fc1ebe3f447fe71af29816", "1fbf49cc46f458bf6e88f6370975e6d4" },
    { "1fded32d5999de4a76e0f8082108823aef60417e1896cf4218a2fa90f632ec8a", "1f3afa4711e9474f32e70462", "",
      "06b2c75853df9aeb17befd33cea81c630b0fc53667ff45199c629c8e15dce41e530aa792f796b8138eeab2e86c7b7bee"
      "1d40b0",
      "91fbd061ddc5a7fcc9513fcdfdc9c3a7c5d4d64cedf6a9c24ab8a77c36eefbf1c5dc00bc50121b96456c8cd8b6ff1f8b"
      "3e480f",
      "30096d340f3d5c42d82a6f475def23eb" },
    { "5fe01c4baf01cbe07796d5aaef6ec1f45193a98a223594ae4f0ef4952e82e330", "bd587321566c7f1a5dd8652d",
      "9013617817dda947e135ee6dd3653382",
      "881dc6c7a5d4509f3c4bd2daab08f165ddc204489aa8134562a4eac3d0bcad7965847b102733bb63d1e5c598ece0c3e5"
      "dadddd",
      "16e375b4973b339d3f746c1c5a568bc7526e909ddff1e19c95c94a6ccff210c9a4a40679de5760c396ac0e2ceb1234f9"
      "f5fe26",
      "abd3d26d65a6275f7a4f56b422acab49" },
};

static void test(const char *const vector[6])
{
    uint8_t bytes[32], nonce[12];
    _Alignas(4) uint8_t aad[16], data[64], tag[16];
    struct gcm_key key;
    gcm_key_init(&key, bytes, unhex(bytes, sizeof bytes, vector[0]));
    unhex(nonce, sizeof nonce, vector[1]);
    size_t aad_len = unhex(aad, sizeof aad, vector[2]), len = unhex(data, sizeof data, vector[3]);
    gcm_seal(&key, nonce, aad, aad_len, data, len, tag);
    check_hex("GCM, sealed", data, len, vector[4]);
    check_hex("GCM, tag", tag, sizeof tag, vector[5]);
    tag[11] ^= 1;
    check("GCM, a changed tag is refused", !gcm_open(&key, nonce, aad, aad_len, data, len, tag, 12));
    check_hex("GCM, what is refused stays sealed", data, len, vector[4]);
    check("GCM, tag of 8 bytes", gcm_open(&key, nonce, aad, aad_len, data, len, tag, 8));
    check_hex("GCM, opened", data, len, vector[3]);
}

void test_gcm(void)
{
    for (size_t i = 0; i < COUNT(vectors); i++)
        test(vectors[i]);
}
